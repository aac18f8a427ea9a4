/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tool/tool.h"

struct number tool_number(double value)
{
    struct number number;
    if (fabs(value) < 1e15 && value == floor(value)) { /* as people write whole numbers, without an exponent */
        snprintf(number.text, sizeof number.text, "%.0f", value);
        return number;
    }
    int precision = 1;
    do {
        snprintf(number.text, sizeof number.text, "%.*g", precision, value);
    } while (strtod(number.text, NULL) != value && precision++ < 17);
    return number;
}
