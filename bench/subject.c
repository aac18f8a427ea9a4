/* SPDX-License-Identifier: Apache-2.0 */
#include "subject.h"

static const char *const scenario_names[SCENARIOS] = {"random",  "all tied",     "all over",  "idle",
                                                      "unknown", "fraction 0.9", "usual cost"};
static const char *const subject_names[SUBJECTS] = {"D",      "D+m",      "B",     "C",       "C+m",  "A",
                                                    "select", "select+m", "place", "place+e", "grow", "release"};
static const char *const mode_names[MODES] = {"latency", "throughput"};

const char *scenario_name(enum scenario scenario)
{
    return scenario_names[scenario];
}

const char *subject_name(enum subject subject)
{
    return subject_names[subject];
}

const char *mode_name(enum mode mode)
{
    return mode_names[mode];
}
