// Debian's libmsgpuck.a cannot be part of a shared library: it is not position-independent. The header can
// make the two tables that its inline functions use; nothing else of the archive is needed.
#define MP_SOURCE 1
#include <msgpuck.h>
