# SPDX-License-Identifier: Apache-2.0
"""Which nginx.conf and policy files are accepted, and the messages for the others."""

import cases

UPSTREAM = "upstream u { kvca zone=ranks; server 127.0.0.1:1; }"
ZONE = "kvca_zone ranks 1m;"
SERVER = "server { listen 127.0.0.1:@port@; location / { proxy_pass http://u; } %s }"


class Configuration(cases.Case):
    def check_refused(self, text, said, place="#!", policy=None):
        """nginx -t prints `said`, with the line of `place` if that is given."""
        nginx = self.make(text)
        if policy is not None:
            (nginx.prefix / "policy.yaml").write_text(policy)
        status, output = nginx.check()
        self.assertEqual(status, 1, output)
        self.assertIn("[emerg]", output)
        self.assertIn(nginx.fill(said), output)
        if place:
            self.assertIn(f"in {nginx.config_path}:{nginx.line(place)}", output)

    def refused_in_upstream(self, line, said, server="server 127.0.0.1:1;", place="#!"):
        self.check_refused(f"{ZONE}\nupstream u {{\nkvca zone=ranks;\n{line} #!\n{server}\n}}\n{SERVER % ''}", said,
                           place)

    def test_kvca_zone(self):
        self.check_table([
            ("kvca_zone;", "invalid number of arguments in \"kvca_zone\" directive"),
            ("kvca_zone ranks;", "invalid number of arguments in \"kvca_zone\" directive"),
            ("kvca_zone ranks 1m block_size=16 more;", "invalid number of arguments in \"kvca_zone\" directive"),
            ("kvca_zone ranks large;", "invalid parameter \"large\" of \"kvca_zone\": accepted is a size from 32k"),
            ("kvca_zone ranks 16k;", "invalid parameter \"16k\" of \"kvca_zone\": accepted is a size from 32k"),
            ("kvca_zone ranks -1m;", "invalid parameter \"-1m\" of \"kvca_zone\""),
            ("kvca_zone ranks 1m block_size=0;", "invalid parameter \"block_size=0\" of \"kvca_zone\": "
             "accepted is a number from 1 to"),
            ("kvca_zone ranks 1m block_size=;", "invalid parameter \"block_size=\""),
            ("kvca_zone ranks 1m block_size=x;", "invalid parameter \"block_size=x\""),
            ("kvca_zone ranks 1m block_size=-1;", "invalid parameter \"block_size=-1\""),
            ("kvca_zone ranks 1m block_size=4294967296;", "invalid parameter \"block_size=4294967296\""),
            ("kvca_zone ranks 1m blocksize=16;", "invalid parameter \"blocksize=16\" of \"kvca_zone\": "
             "accepted is block_size=TOKENS"),
        ], lambda line, said: self.check_refused(f"{line} #!\n{UPSTREAM}\n{SERVER % ''}", said))

    def test_conflicting_zones_are_refused(self):
        self.check_table([
            (f"{ZONE}\nkvca_zone ranks 1m; #!\n{UPSTREAM}\n{SERVER % ''}", "duplicate zone \"ranks\"", "#!"),
            (f"{ZONE}\nkvca_zone ranks 2m; #!\n{UPSTREAM}\n{SERVER % ''}", "ranks\" conflicts", "#!"),
            (f"limit_req_zone $uri zone=ranks:1m rate=1r/s;\nkvca_zone ranks 1m; #!\n{UPSTREAM}\n{SERVER % ''}",
             "is already declared for a different use", "#!"),
            (f"upstream u {{\nkvca zone=ranks; #!\nserver 127.0.0.1:1; }}\n{SERVER % ''}",
             "there is no \"kvca_zone ranks\"", "#!"),
            (f"{ZONE}\nupstream u {{\nkvca zone=rank; #!\nserver 127.0.0.1:1; }}\n{SERVER % ''}",
             "there is no \"kvca_zone rank\"", "#!"),
            (f"{SERVER % ''}\n{UPSTREAM.replace('kvca', 'kvca_zone ranks 1m; kvca')} #!",
             "\"kvca_zone\" directive is not allowed here", "#!"),
        ], self.check_refused)

    def test_contexts(self):
        for directive in ("kvca zone=ranks;", "kvca_tokens 1;", "kvca_output 1;",
                          "kvca_rank 127.0.0.1:1 total_kv_blocks=1;"):
            said = f"\"{directive.split()[0]}\" directive is not allowed here"
            self.check_refused(f"{ZONE}\n{directive} #!\n{UPSTREAM}\n{SERVER % ''}", said)
            self.check_refused(f"{ZONE}\n{UPSTREAM}\n{SERVER % (chr(10) + directive + ' #!' + chr(10))}", said)
        for place in (f"kvca_status json; #!\n{SERVER % ''}", SERVER % "\nkvca_status json; #!\n"):
            self.check_refused(f"{ZONE}\n{UPSTREAM}\n{place}", "\"kvca_status\" directive is not allowed here")

    def test_kvca(self):
        self.check_table([
            ("kvca;", "invalid number of arguments in \"kvca\" directive"),
            ("kvca overflow=reject;", "\"kvca\" directive needs zone=NAME"),
            ("kvca zone=;", "\"kvca\" directive needs zone=NAME"),
            ("kvca zone=ranks role=router;", "accepted are role=decode, prefill, aggregated and encode"),
            ("kvca zone=ranks overflow=wait;", "invalid parameter \"overflow=wait\" of \"kvca\": "
             "accepted are overflow=place and overflow=reject"),
            ("kvca zone=ranks overflow=;", "invalid parameter \"overflow=\""),
            ("kvca zone=ranks overflow=reject status=399;", "invalid parameter \"status=399\" of \"kvca\": "
             "accepted is a number from 400 to 599"),
            ("kvca zone=ranks overflow=reject status=600;", "invalid parameter \"status=600\""),
            ("kvca zone=ranks overflow=reject status=x;", "invalid parameter \"status=x\""),
            ("kvca zone=ranks overflow=reject retry_after=-1;", "invalid parameter \"retry_after=-1\""),
            ("kvca zone=ranks overflow=reject retry_after=1s;", "invalid parameter \"retry_after=1s\""),
            ("kvca zone=ranks status=429;", "no effect without overflow=reject"),
            ("kvca zone=ranks overflow=place retry_after=2;", "no effect without overflow=reject"),
            ("kvca zone=ranks polcy=a.yaml;", "invalid parameter \"polcy=a.yaml\" of \"kvca\": accepted are zone="),
            ("kvca zone=ranks ranks;", "invalid parameter \"ranks\" of \"kvca\""),
            ("kvca zone=ranks; kvca zone=ranks;", "\"kvca\" directive is duplicate"),
            ("least_conn; kvca zone=ranks;", "must stand before \"keepalive\""),
            ("keepalive 8; kvca zone=ranks;", "must stand before \"keepalive\""),
            ("hash $uri; kvca zone=ranks;", "must stand before \"keepalive\""),
        ], lambda line, said: self.check_refused(
            f"{ZONE}\nupstream u {{\n{line} #!\nserver 127.0.0.1:1;\n}}\n{SERVER % ''}", said))

    def test_servers(self):
        self.check_table([
            ("server 127.0.0.1:1 weight=2;", "balancing method does not support parameter \"weight=2\"", ""),
            ("server 127.0.0.1:1 backup;", "balancing method does not support parameter \"backup\"", ""),
        ], self.refused_in_upstream)
        for option in ("weight=2", "backup"):
            self.check_refused(f"{ZONE}\nupstream u {{\nserver 127.0.0.1:1 {option}; server 127.0.0.1:2;\n"
                               f"kvca zone=ranks; #!\n}}\n{SERVER % ''}", option.partition("=")[0])
        self.check_refused(f"{ZONE}\nupstream u {{\nserver 127.0.0.1:1;\nkvca zone=ranks; #!\nserver 127.0.0.1:1;\n}}\n"
                           f"{SERVER % ''}", "two servers of upstream \"u\" have the address 127.0.0.1:1")
        self.check_refused(f"{ZONE}\nupstream u {{\nkvca zone=ranks;\n}} #!\n{SERVER % ''}",
                           "no servers are inside upstream", None)

    def test_another_method_after_kvca_is_refused(self):
        """nginx itself only warns."""
        for method in ("least_conn", "ip_hash", "random", "hash $uri"):
            self.check_refused(f"{ZONE}\nupstream u {{\nkvca zone=ranks; #!\nserver 127.0.0.1:1; {method};\n}}\n"
                               f"{SERVER % ''}",
                               "another balancing method takes the place of \"kvca\" in upstream \"u\"")

    def test_kvca_tokens(self):
        self.check_table([
            ("kvca_tokens;", "invalid number of arguments in \"kvca_tokens\" directive"),
            ("kvca_tokens $http_a bytes_per_token=4 max=4 more;", "invalid number of arguments in \"kvca_tokens\""),
            ("kvca_tokens $http_a $http_b;", "invalid parameter \"$http_b\" of \"kvca_tokens\": one value is accepted"),
            ("kvca_tokens $nobody;", "unknown \"nobody\" variable", "server 127.0.0.1:1;", None),
            ("kvca_tokens $http_a bytes_per_token=0;", "invalid parameter \"bytes_per_token=0\" of \"kvca_tokens\": "
             "accepted is a number from 1"),
            ("kvca_tokens $http_a bytes_per_token=1.5;", "invalid parameter \"bytes_per_token=1.5\""),
            ("kvca_tokens $http_a max=0;", "invalid parameter \"max=0\" of \"kvca_tokens\""),
            ("kvca_tokens $http_a max=x;", "invalid parameter \"max=x\""),
            ("kvca_tokens $http_a max=;", "invalid parameter \"max=\""),
            ("kvca_tokens 1; kvca_tokens 1;", "\"kvca_tokens\" directive is duplicate"),
        ], self.refused_in_upstream)

    def test_kvca_output(self):
        self.check_table([
            ("kvca_output;", "invalid number of arguments in \"kvca_output\" directive"),
            ("kvca_output 1 growth=sse more;", "invalid number of arguments in \"kvca_output\" directive"),
            ("kvca_output 1 2;", "invalid parameter \"2\" of \"kvca_output\": one value is accepted"),
            ("kvca_output growth=json;", "invalid parameter \"growth=json\" of \"kvca_output\": "
             "accepted is growth=sse"),
            ("kvca_output growth=;", "invalid parameter \"growth=\""),
            ("kvca_output $nobody;", "unknown \"nobody\" variable", "server 127.0.0.1:1;", None),
            ("kvca_output 1; kvca_output 1;", "\"kvca_output\" directive is duplicate"),
        ], self.refused_in_upstream)

    def test_kvca_rank(self):
        self.check_table([
            ("kvca_rank 127.0.0.1:1;", "invalid number of arguments in \"kvca_rank\" directive"),
            ("kvca_rank 127.0.0.1:1 total_kv_blocks=1 more;", "invalid number of arguments in \"kvca_rank\""),
            ("kvca_rank 127.0.0.1:1 blocks=1;", "invalid parameter \"blocks=1\" of \"kvca_rank\": "
             "accepted is total_kv_blocks=BLOCKS"),
            ("kvca_rank 127.0.0.1:1 total_kv_blocks=0;", "invalid parameter \"total_kv_blocks=0\" of \"kvca_rank\": "
             "accepted is a number from 1"),
            ("kvca_rank 127.0.0.1:1 total_kv_blocks=x;", "invalid parameter \"total_kv_blocks=x\""),
            ("kvca_rank 127.0.0.1:1 total_kv_blocks=9223372036854775808;", "invalid parameter \"total_kv_blocks="),
            ("kvca_rank 127.0.0.1:2 total_kv_blocks=1;",
             "no server of upstream \"u\" has the address of rank \"127.0.0.1:2\""),
            ("kvca_rank 127.0.0.1 total_kv_blocks=1;", "no server of upstream \"u\" has the address of rank"),
            ("kvca_rank 127.0.0.1:x total_kv_blocks=1;", "invalid port in rank \"127.0.0.1:x\""),
            ("kvca_rank nobody.invalid:1 total_kv_blocks=1;", "in rank \"nobody.invalid:1\""),
            ("kvca_rank 127.0.0.1:1 total_kv_blocks=1; kvca_rank 127.0.0.1:1 total_kv_blocks=2;",
             "is given total_kv_blocks=1 and total_kv_blocks=2"),
        ], self.refused_in_upstream)

    def test_kvca_status(self):
        self.check_table([
            ("kvca_status;", "invalid number of arguments in \"kvca_status\" directive"),
            ("kvca_status xml;", "invalid parameter \"xml\" of \"kvca_status\": accepted are json and prometheus"),
            ("kvca_status json more;", "invalid number of arguments in \"kvca_status\" directive"),
        ], lambda line, said: self.check_refused(
            f"{ZONE}\n{UPSTREAM}\n{SERVER % ('location /s {' + chr(10) + line + ' #!' + chr(10) + '}')}", said))

    def test_policies(self):
        """The message names both places: in the policy file, and the line that names the file."""
        path = "@prefix@/policy.yaml"
        self.check_table([
            ("capacity_fraction: 2\n", f"{path}:1:20: capacity_fraction must be"),
            ("count_priority: true\ncapacity_fractoin: 1\n", f"{path}:2:1: "),
            ("worker_selection:\n  decode: nobody\n", f"{path}:2:11: "),
            ("worker_selection:\n  decode: default\n", f"{path}:2:11: the decode pool is not served by"),
            ("worker_selection: {}\n", f"{path}:1:"),
            ("a: [\n", f"{path}:2:1: "),
            ("capacity_blocks: 0\n", f"{path}:1:18: "),
        ], lambda policy, said: self.check_refused(
            f"{ZONE}\nupstream u {{\nkvca zone=ranks policy=policy.yaml; #!\nserver 127.0.0.1:1;\n}}\n{SERVER % ''}",
            said, policy=policy))
        self.check_refused(f"{ZONE}\nupstream u {{\nkvca zone=ranks policy=none.yaml; #!\nserver 127.0.0.1:1;\n}}\n"
                           f"{SERVER % ''}", "@prefix@/none.yaml")

    def test_roles(self):
        policy = """\
worker_selection:
  decode: tight
  prefill: wide
  aggregated: default
  instances:
    - {name: tight, type: dynamo-kv-capacity-aware, parameters: {capacity_fraction: 0.5}}
    - {name: wide, type: dynamo-kv-capacity-aware, parameters: {capacity_fraction: 0.9}}
"""
        for role, fraction in (("", 0.5), (" role=decode", 0.5), (" role=prefill", 0.9)):
            nginx = self.make(cases.config(1, 100, kvca=f" policy=policy.yaml{role}"), self.backends(None))
            (nginx.prefix / "policy.yaml").write_text(policy)
            nginx.start()
            self.assertEqual(nginx.zone()["capacity_fraction"], fraction)
        for role in ("aggregated", "encode"):
            self.check_refused(f"{ZONE}\nupstream u {{\nkvca zone=ranks policy=policy.yaml role={role}; #!\n"
                               f"server 127.0.0.1:1;\n}}\n{SERVER % ''}", f"the {role} pool is not served by",
                               policy=policy)

    def test_an_absolute_path(self):
        nginx = self.make(cases.config(1, 100, kvca=" policy=@prefix@/sub/policy.yaml"), self.backends(None))
        (nginx.prefix / "sub").mkdir()
        (nginx.prefix / "sub" / "policy.yaml").write_text("capacity_fraction: 0.25")
        nginx.start()
        self.assertEqual(nginx.zone()["capacity_fraction"], 0.25)

    def test_upstreams_of_one_zone_have_one_policy(self):
        text = (f"{ZONE}\nupstream u {{ kvca zone=ranks; server 127.0.0.1:1; }}\n"
                f"upstream v {{\nkvca zone=ranks policy=policy.yaml; #!\nserver 127.0.0.1:1; }}\n{SERVER % ''}")
        for policy in ("capacity_fraction: 0.9", "capacity_fraction: null", "count_priority: false",
                       "decode_active_request_weight: 1", "capacity_blocks: 100"):
            self.check_refused(text, "upstreams of one zone must have the same policy", policy=policy)
        nginx = self.make(text)
        (nginx.prefix / "policy.yaml").write_text("capacity_fraction: 1.0\n")
        self.assertEqual(nginx.check()[0], 0)

    def test_ranks_of_one_zone_have_one_capacity(self):
        self.check_refused(
            f"{ZONE}\nupstream u {{ kvca zone=ranks; server 127.0.0.1:1; kvca_rank 127.0.0.1:1 total_kv_blocks=5; }}\n"
            f"upstream v {{ kvca zone=ranks; server 127.0.0.1:1;\nkvca_rank 127.0.0.1:1 total_kv_blocks=6; #!\n }}\n"
            f"{SERVER % ''}", "is given total_kv_blocks=5 and total_kv_blocks=6")

    def test_a_zone_that_is_too_small_is_refused(self):
        """The size in the message is enough, and not much too large."""
        servers = "\n".join(f"server 127.0.0.1:{port};" for port in range(1, 1001))
        text = f"kvca_zone ranks %s;\nupstream u {{ kvca zone=ranks;\n{servers}\n}}\n{SERVER % ''}"
        nginx = self.make(text % "32k")
        status, output = nginx.check()
        self.assertEqual(status, 1)
        self.assertIn("zone \"ranks\" is too small: it has room for ", output)
        self.assertIn(" ranks, and 1000 are configured", output)
        kilobytes = int(output.partition("kvca_zone ranks ")[2].partition("k")[0])
        self.assertEqual(self.make(text % f"{kilobytes}k").check()[0], 0)
        self.assertEqual(self.make(text % f"{int(kilobytes * 0.9)}k").check()[0], 1)
        more_owners = self.make(text % f"{kilobytes}k", workers=16)
        self.assertEqual(more_owners.check()[0], 1)

    def test_some_lines_must_stand_below_kvca(self):
        for line in ("kvca_tokens 1;", "kvca_output 1;", "kvca_rank 127.0.0.1:1 total_kv_blocks=1;"):
            for kvca in ("", "kvca zone=ranks;"):
                self.check_refused(f"{ZONE}\nupstream u {{\n{line} #!\n{kvca}\nserver 127.0.0.1:1;\n}}\n{SERVER % ''}",
                                   f"\"{line.split()[0]}\" directive needs \"kvca zone=NAME\" above it")

    def test_other_lines_may_stand_in_any_order(self):
        nginx = self.make(f"""
            upstream u {{
                server @b0@;
                kvca retry_after=3 status=429 overflow=reject zone=ranks;
                kvca_rank @b0@ total_kv_blocks=100;
                kvca_output growth=sse;
                kvca_tokens max=1000 160;
                keepalive 4;
            }}
            {SERVER % "location /kvca { kvca_status json; }"}
            {ZONE}
            """, self.backends(None))
        nginx.start()
        self.assertEqual(nginx.ask("/").status, 200)
        self.assertEqual(nginx.zone()["ranks"][0]["total_kv_blocks"], 100)

    def test_an_empty_zone_name_is_refused(self):
        self.check_refused(f"kvca_zone \"\" 1m; #!\n{UPSTREAM}\n{SERVER % ''}", "accepted is a name")

    def test_ranks_by_name_and_default_port(self):
        for server, rank in (("127.0.0.1", "127.0.0.1:80"), ("127.0.0.1:80", "127.0.0.1"), ("[::1]:9", "[::1]:9"),
                             ("unix:/nowhere", "unix:/nowhere")):
            nginx = self.make(f"{ZONE} upstream u {{ kvca zone=ranks; server {server}; "
                              f"kvca_rank {rank} total_kv_blocks=1; }} {SERVER % ''}")
            status, output = nginx.check()
            self.assertEqual(status, 0, output)

    def test_the_example_in_the_documentation_is_accepted(self):
        nginx = self.make("""
            kvca_zone ranks 1m block_size=16;
            upstream vllm {
                zone vllm 128k;
                kvca zone=ranks policy=policy.yaml overflow=reject;
                kvca_tokens $http_x_prompt_tokens bytes_per_token=4 max=131072;
                kvca_output $http_x_max_tokens growth=sse;
                kvca_rank @b0@ total_kv_blocks=27000;
                server @b0@ max_fails=0;
                server @b1@ max_fails=0;
                keepalive 64;
            }
            server {
                listen 127.0.0.1:@port@;
                location /v1/ {
                    proxy_pass http://vllm; proxy_http_version 1.1; proxy_set_header Connection "";
                    proxy_buffering off;
                }
                location = /kvca { kvca_status json; allow 127.0.0.1; deny all; }
                location = /metrics { kvca_status prometheus; allow 127.0.0.1; deny all; }
            }
            """, self.backends(None, None))
        (nginx.prefix / "policy.yaml").write_text("capacity_fraction: 1.0\n")
        nginx.start()
        self.assertEqual(nginx.ask("/v1/completions", cases.tokens(10)).status, 200)
