# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completes the command kvca in bash. Needs only bash. tests/docs/completion.py runs it.

# Offers the words that begin with $word. If there are none, bash offers files.
_kvca_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word")
}

# Offers no files where a number is wanted. (compopt fails outside of a completion, as in a test.)
_kvca_nothing() {
    compopt +o default 2> /dev/null
}

# Completes the argument of the option in $before. Fails if it takes none.
_kvca_argument() {
    case $command$before in
    check--role | select--role) _kvca_words 'decode prefill aggregated encode' ;;
    select-c | select--policy) ;;
    select--request-blocks | select--seed) _kvca_nothing ;;
    replay--policy)
        compopt -o filenames 2> /dev/null
        mapfile -t COMPREPLY < <(compgen -W 'default kvca least_requests p2c round_robin' -f -- "$word")
        ;;
    replay--format) _kvca_words 'table json csv' ;;
    replay--engine) _kvca_words 'fast plain' ;;
    replay--ranks | replay--capacity | replay--block-size | replay--max-num-seqs | replay--watermark | \
        replay--batch-ms | replay--speed | replay--seed | replay--seeds) _kvca_nothing ;;
    *) return 1 ;;
    esac
}

_kvca_options() {
    case $command in
    '') if [[ $word == -* ]]; then _kvca_words '-h --help --version'; else _kvca_words 'check select replay help'; fi ;;
    check) _kvca_words '-q --quiet --role -h --help' ;;
    select) _kvca_words '-c --policy --role --request-blocks --seed --json -h --help' ;;
    replay) _kvca_words '--ranks --capacity --block-size --max-num-seqs --watermark --batch-ms --independent
        --policy --track-output-blocks --hold --speed --synthetic --seed --seeds --format --engine -h --help' ;;
    esac
}

_kvca() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        command=
        _kvca_options
        return
    fi
    # bash splits "--role=decode" into three words.
    if [ "$word" = = ]; then
        word=
    elif [ "$before" = = ]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ! _kvca_argument && [[ $word == -* ]]; then
        _kvca_options
    fi
}

complete -o default -F _kvca kvca
