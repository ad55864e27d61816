/* The orrery program: for now it tells its version. */
#include "config.h"

#include <glib.h>

int main(void)
{
    g_print("%s\n", PACKAGE_STRING);
    return 0;
}
