#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tells nginx what each vLLM server can hold. Reads /metrics and posts the capacity to a kvca_status location.

    vllm_capacity.py --status http://127.0.0.1:8080/kvca 10.0.0.1:8000 10.0.0.2:8000
    vllm_capacity.py --status http://127.0.0.1:8080/kvca --every 30 10.0.0.1:8000 10.0.0.2:8000

A RANK is an address as nginx knows it: one vLLM server with one engine behind it. Its capacity is in the labels of
vLLM's metric vllm:cache_config_info:

- kv_cache_size_tokens, if it is there, is the number of tokens that the engine can hold
  (https://github.com/vllm-project/vllm/pull/42206);
- otherwise it is num_gpu_blocks x block_size. That is wrong for hybrid models and with context parallelism: set those
  by hand (kvca_rank). Early versions have "None" (https://github.com/vllm-project/vllm/pull/15755), which is refused.

An address with several engines (see the label `engine`) is refused: vLLM itself chooses among them, and a request that
fits their sum may fit none of them. docs/nginx.md says more.

A server that does not answer yet is asked again for --wait seconds. With --every S, all are read and posted every S
seconds until the program is killed, so a restart of vLLM or nginx does no harm. Exit status: 0 all were posted, 1 some
were not, 2 wrong use.
"""

import argparse
import http.client
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

METRIC = "vllm:cache_config_info{"
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # ignores proxies of the environment


class Fault(Exception):
    """Another try will not help."""


class NotYet(Exception):
    """Another try may help."""


def number(labels, name):
    """A label as a number of at least 1, or None. vLLM writes None if it does not know the number."""
    text = labels.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def capacity(lines):
    """(blocks, tokens in a block) of the only engine in a text of metrics."""
    engines = [dict(LABEL.findall(line)) for line in lines if line.startswith(METRIC)]
    if not engines:
        raise Fault("no vllm:cache_config_info in its metrics")
    names = sorted({labels.get("engine", "0") for labels in engines})
    if len(names) > 1:
        raise Fault(f"{len(names)} engines behind one address ({', '.join(names)}): give each rank a port of its own")
    found = {of_engine(labels) for labels in engines}
    if len(found) > 1:
        raise Fault(f"its metrics tell several capacities: {sorted(found)}")
    return found.pop()


def of_engine(labels):
    tokens, blocks, size = (number(labels, name) for name in ("kv_cache_size_tokens", "num_gpu_blocks", "block_size"))
    if tokens:
        return tokens, 1
    if blocks and size:
        return blocks, size
    told = ", ".join(f"{name} {labels.get(name, 'missing')}" for name in ("num_gpu_blocks", "block_size"))
    raise Fault(f"its metrics tell no capacity: {told}")


def explain(error, method):
    said = error.read(200).decode("utf-8", "replace").split("\n")[0]
    if error.code == 404 and method == "POST":
        return "404: no such rank, or no kvca_status there"
    return f"{error.code}: {said}" if said and error.headers.get_content_type() == "text/plain" else str(error.code)


def ask(url, method, options):
    """The lines of the answer. No answer and 5xx raise NotYet, other errors raise Fault."""
    try:
        with OPENER.open(urllib.request.Request(url, method=method), timeout=options.timeout) as answer:
            return answer.read().decode("utf-8", "replace").split("\n")
    except urllib.error.HTTPError as error:
        kind = NotYet if error.code >= 500 else Fault
        raise kind(f"{url} answers {explain(error, method)}") from error
    except (ValueError, http.client.InvalidURL) as error:
        raise Fault(f"{url}: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        raise NotYet(f"{url}: {getattr(error, 'reason', error)}") from error


def update(rank, options):
    """Reads one rank and posts it. Returns what to print about it."""
    blocks, size = capacity(ask(options.metrics.replace("RANK", rank), "GET", options))
    query = {"rank": rank, "blocks": blocks, "block_size": size, **({"zone": options.zone} if options.zone else {})}
    ask(f"{options.status}?{urllib.parse.urlencode(query, safe=':[]/')}", "POST", options)
    return f"{blocks} blocks of {size} tokens" if size > 1 else f"{blocks} tokens"


def sweep(ranks, options, said):
    """Tries each rank once and prints what is new. Returns the ranks to try again, and how many failed for good."""
    again, failed = [], 0
    for rank in ranks:
        try:
            text = update(rank, options)
        except NotYet as reason:
            again.append(rank)
            text = f"not yet: {reason}"
        except Fault as reason:
            failed += 1
            text = f"not posted: {reason}"
        if said.get(rank) != text:
            print(f"{rank}: {text}", file=sys.stderr, flush=True)
        said[rank] = text
    return again, failed


def seconds(text):
    value = float(text)
    if not 0 < value < 1e6:
        raise ValueError
    return value


def web_address(text):
    if not text.startswith(("http://", "https://")):
        raise ValueError
    return text


def parse_arguments():
    parser = argparse.ArgumentParser(description="Posts the capacities of vLLM servers to nginx (kvca_status).")
    parser.add_argument("--status", required=True, type=web_address, metavar="URL", help="a kvca_status location")
    parser.add_argument("--zone", help="the kvca_zone, where several know the address; all of them otherwise")
    parser.add_argument(
        "--metrics", default="http://RANK/metrics", type=web_address, metavar="URL", help="default: http://RANK/metrics"
    )
    parser.add_argument("--wait", type=seconds, default=600, metavar="S", help="how long to try again (default: 600)")
    parser.add_argument("--every", type=seconds, metavar="S", help="go on, every S seconds")
    parser.add_argument("--timeout", type=seconds, default=5, metavar="S", help="of one request (default: 5)")
    parser.add_argument("ranks", nargs="+", metavar="RANK", help="address and port, as nginx knows it")
    return parser.parse_args()


def main():
    options, said = parse_arguments(), {}
    while options.every:
        sweep(options.ranks, options, said)
        time.sleep(options.every)
    deadline = time.monotonic() + options.wait
    again, failed = sweep(options.ranks, options, said)
    while again and time.monotonic() < deadline:
        time.sleep(min(2, options.wait / 10))
        again, faults = sweep(again, options, said)
        failed += faults
    return 1 if again or failed else 0


if __name__ == "__main__":
    sys.exit(main())
