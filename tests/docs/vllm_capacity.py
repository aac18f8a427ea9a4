#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/examples/vllm_capacity.py with toy servers: what it posts for each form of vLLM's metrics and after each
failure.

    tests/docs/vllm_capacity.py [docs/examples/vllm_capacity.py]

The metrics are made up, in the forms that vLLM has written over its versions. All traffic is to 127.0.0.1.
"""

import http.server
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.parse

HELPER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/examples/vllm_capacity.py").resolve()
INFO = "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info"
V0 = 'block_size="16",cache_dtype="auto",num_cpu_blocks="7281",num_gpu_blocks="24188",sliding_window="None"'
V1 = 'block_size="16",enable_prefix_caching="True",engine="0",num_cpu_blocks="None",num_gpu_blocks="9271"'
NEW = ('block_size="4",engine="0",kv_cache_dtype_skip_layers="[]",kv_cache_max_concurrency="1.1",'
       'kv_cache_size_tokens="290925",num_gpu_blocks="5000"')

# name: metrics, what is posted after the rank, what is printed
FORMS = {
    "2024": (f"{INFO}{{{V0}}} 1.0\n", "blocks=24188&block_size=16", "24188 blocks of 16 tokens"),
    "2025, with the engine": (f"{INFO}{{{V1}}} 1.0\n", "blocks=9271&block_size=16", "9271 blocks of 16 tokens"),
    "2026, tokens of a hybrid model": (f"{INFO}{{{NEW}}} 1.0\n", "blocks=290925&block_size=1", "290925 tokens"),
    "rank 3 of external balancing": (
        INFO + "{" + V1.replace('engine="0"', 'engine="3"') + "} 1.0\n", "blocks=9271&block_size=16", "9271 blocks"),
    "tokens not known": (
        INFO + "{" + NEW.replace('"290925"', '"None"') + "} 1.0\n", "blocks=5000&block_size=4", "5000 blocks of 4"),
    "tokens of 0": (
        INFO + "{" + NEW.replace('"290925"', '"0"') + "} 1.0\n", "blocks=5000&block_size=4", "5000 blocks of 4"),
    "no value, a time": (f"{INFO}{{{V1}}} 1 1700000000000\n", "blocks=9271&block_size=16", "9271 blocks"),
    "escapes, braces, commas": (
        INFO + '{a="x\\"},num_gpu_blocks=\\"7",b="{c=\\\\",' + V1 + "} 1.0\n",
        "blocks=9271&block_size=16", "9271 blocks"),
    "other metrics around it": (
        'vllm:vllm_config_info{num_gpu_blocks="1",block_size="1"} 1.0\nvllm:num_requests_running{engine="0"} 3.0\n'
        f'# HELP vllm:cache_config_info {{block_size="1"}}\n{INFO}{{{V1}}} 1.0\nvllm:cache_config_info_x{{}} 1\n',
        "blocks=9271&block_size=16", "9271 blocks"),
    "no UTF-8 elsewhere": (f"x{{a=\"\udcff\"}} 1\n{INFO}{{{V1}}} 1.0\n", "blocks=9271&block_size=16", "9271 blocks"),
    "one engine told twice": (
        f'{INFO}{{{V1}}} 1.0\nvllm:cache_config_info{{{V1},pid="7"}} 1.0\n',
        "blocks=9271&block_size=16", "9271 blocks"),
    "blocks not known": (
        INFO + "{" + V1.replace('"9271"', '"None"') + "} 1.0\n",
        None, "no capacity: num_gpu_blocks None, block_size 16"),
    "block size of 0": (INFO + "{" + V1.replace('"16"', '"0"') + "} 1.0\n", None, "no capacity"),
    "no labels": (f"{INFO}{{}} 1.0\n", None, "no capacity: num_gpu_blocks missing, block_size missing"),
    "negative": (INFO + "{" + V1.replace('"9271"', '"-9271"') + "} 1.0\n", None, "no capacity: num_gpu_blocks -9271"),
    "other digits": (INFO + "{" + V1.replace('"9271"', '"٩٢"') + "} 1.0\n", None, "no capacity"),
    "two engines": (
        INFO + "{" + V1 + "} 1.0\nvllm:cache_config_info{" + V1.replace('engine="0"', 'engine="1"') + "} 1.0\n", None,
        "2 engines behind one address (0, 1)"),
    "one engine, two capacities": (
        INFO + "{" + V1 + "} 1.0\nvllm:cache_config_info{" + V1.replace("9271", "9272") + "} 1.0\n", None,
        "several capacities: [(9271, 16), (9272, 16)]"),
    "another metric alone": ('vllm:num_requests_running{engine="0"} 3.0\n', None, "no vllm:cache_config_info"),
    "nothing": ("", None, "no vllm:cache_config_info"),
}


class Toy(http.server.ThreadingHTTPServer):
    """Answers requests from a list of (status, text). The last one stays. Keeps what was asked."""

    daemon_threads = True

    def __init__(self, *answers, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.answers, self.asked = list(answers), []
        self.name = f"127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        toy = self.server
        toy.asked.append(f"{self.command} {self.path}")
        status, text = toy.answers.pop(0) if len(toy.answers) > 1 else toy.answers[0]
        body = text.encode("utf-8", "surrogateescape")
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", text)
        self.send_header("Content-Type", "text/html" if text.startswith("<") else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def command(nginx, *arguments):
    return [sys.executable, HELPER, "--status", f"http://{nginx.name}/kvca", *map(str, arguments)]


def finished(arguments):
    return subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)


def run(nginx, *arguments, wait=0.01):
    return finished(command(nginx, "--wait", wait, *arguments))


def fault(name, done, status, told, nginx=None, posted=None):
    """What is wrong with a run; None if nothing is."""
    wrong = [f"status {done.returncode}, not {status}"] if done.returncode != status else []
    wrong += [f"not told: {text!r}" for text in told if text not in done.stderr]
    wrong += ["a traceback"] if "Traceback" in done.stderr else []
    wrong += [f"standard output: {done.stdout!r}"] if done.stdout else []
    if nginx and nginx.asked != posted:
        wrong.append(f"asked nginx {nginx.asked}, not {posted}")
    return f"{name}: {'; '.join(wrong)}; standard error: {done.stderr!r}" if wrong else None


def post(rank, query):
    return f"POST /kvca?rank={rank}&{query}"


def forms():
    for name, (metrics, query, told) in FORMS.items():
        with Toy((200, metrics)) as vllm, Toy((204, "")) as nginx:
            expected = [post(vllm.name, query)] if query else []
            yield fault(name, run(nginx, vllm.name), 0 if query else 1, [vllm.name, told], nginx, expected)
            yield None if vllm.asked == ["GET /metrics"] else f"{name}: asked vLLM {vllm.asked}"


GOOD = (200, f"{INFO}{{{V1}}} 1.0\n")
QUERY = "blocks=9271&block_size=16"
# name: answers of vLLM, answers of nginx, posts, status, what is printed
ANSWERS = {
    "metrics elsewhere": ([(404, "")], [(204, "")], 0, 1, ["/metrics answers 404"]),
    "metrics after a redirect": ([(307, "/metrics/"), GOOD], [(204, "")], 1, 0, ["9271"]),
    "vLLM starts": ([(503, ""), (503, ""), GOOD], [(204, "")], 1, 0, ["not yet: http", "answers 503", "9271"]),
    "vLLM never starts": ([(503, "")], [(204, "")], 0, 1, ["not yet: http"]),
    "no such rank": ([GOOD], [(404, "<html>")], 1, 1, ["answers 404: no such rank"]),
    "a number that nginx refuses": ([GOOD], [(400, "blocks: too many\nmore")], 1, 1, ["answers 400: blocks: too many"]),
    "no POST there": ([GOOD], [(405, "<html>")], 1, 1, ["answers 405\n"]),
    "nginx restarts": ([GOOD], [(502, ""), (204, "")], 2, 0, ["answers 502", "9271"]),
}


def answers():
    for name, (of_vllm, of_nginx, posts, status, told) in ANSWERS.items():
        with Toy(*of_vllm) as vllm, Toy(*of_nginx) as nginx:
            yield fault(name, run(nginx, vllm.name, wait=1), status, told, nginx,
                        [post(vllm.name, QUERY)] * posts)


def not_listening():
    with Toy(GOOD) as vllm:
        name, port = vllm.name, vllm.server_address[1]
    with Toy((204, "")) as nginx:
        yield fault("vLLM does not listen", run(nginx, name), 1, ["not yet", "refused"], nginx, [])
        with subprocess.Popen(command(nginx, "--wait", 30, name), stderr=subprocess.PIPE, text=True) as process:
            first = process.stderr.readline()
            with Toy(GOOD, port=port):
                told = first + process.stderr.read()
        done = subprocess.CompletedProcess((), process.returncode, "", told)
        yield fault("vLLM listens later", done, 0, ["not yet", "9271"], nginx, [post(name, QUERY)])


def several_ranks():
    with Toy(GOOD) as first, Toy((200, "")) as second, Toy(GOOD) as third, Toy((204, "")) as nginx:
        expected = [post(first.name, QUERY), post(third.name, QUERY)]
        done = run(nginx, first.name, second.name, third.name)
        yield fault("one of three fails", done, 1, [f"{second.name}: not posted"], nginx, expected)
    with Toy(GOOD) as vllm, Toy((204, "")) as nginx:
        done = run(nginx, "--zone", "a&b", "--metrics", f"http://{vllm.name}/x/RANK/metrics", "[::1]:8000")
        yield fault("elsewhere, a zone, IPv6", done, 0, ["[::1]:8000: 9271"], nginx,
                    [post("[::1]:8000", f"{QUERY}&zone=a%26b")])
        yield None if vllm.asked == ["GET /x/[::1]:8000/metrics"] else f"elsewhere: asked vLLM {vllm.asked}"


def until(nginx, posts):
    deadline = time.monotonic() + 30
    while len(nginx.asked) < posts and time.monotonic() < deadline:
        time.sleep(0.02)
    return [re.search(r"blocks=(\d+)", asked)[1] for asked in nginx.asked[:posts]]


def going_on():
    grown = (200, GOOD[1].replace("9271", "9999"))
    with Toy(GOOD, GOOD, (503, ""), grown) as vllm, Toy((204, "")) as nginx:
        with subprocess.Popen(command(nginx, "--every", 0.05, vllm.name), stderr=subprocess.PIPE, text=True) as process:
            posted = until(nginx, 4)
            process.terminate()
            told = [line.split(": ", 1)[1] for line in process.stderr.read().splitlines()]
        yield None if posted == ["9271", "9271", "9999", "9999"] else f"every: posted {posted}"
        starting = f"not yet: http://{vllm.name}/metrics answers 503"
        expected = ["9271 blocks of 16 tokens", starting, "9999 blocks of 16 tokens"]
        yield None if told == expected else f"every: told {told}, not {expected}"


WRONG_USE = [[], ["a:1"], ["--status", "http://a/"], ["--status", "http://a/", "--every", "0", "a:1"],
             ["--status", "http://a/", "--wait", "nan", "a:1"], ["--status", "http://a/", "--timeout", "x", "a:1"],
             ["--status", "kvca", "a:1"], ["--status", "http://a/", "--metrics", "RANK/metrics", "a:1"]]


def wrong_use():
    for arguments in WRONG_USE:
        yield fault(f"wrong use {arguments}", finished([sys.executable, HELPER, *arguments]), 2, ["usage:"])
    with Toy((204, "")) as nginx:
        yield fault("no port", run(nginx, "127.0.0.1:x"), 1, ["not posted", "nonnumeric port"], nginx, [])


def main():
    checks = [check for part in (forms, answers, not_listening, several_ranks, going_on, wrong_use) for check in part()]
    faults = [check for check in checks if check]
    print("\n".join(faults) or f"{len(checks)} checks passed")
    return 1 if faults or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
