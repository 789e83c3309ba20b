/* Test-only: the complex functions of C99 that Wine's ucrtbase.dll leaves as stubs; numpy needs them.
 * Everything else is forwarded to Wine's own, renamed to ucrtbasw.dll (tests/support/wine_shims.py). */
#include <complex.h>
#include <math.h>

typedef struct { double r, i; } D;
typedef struct { float r, i; } F;

static double _Complex zd(D a) { double _Complex z; __real__ z = a.r; __imag__ z = a.i; return z; }
static float _Complex zf(F a) { float _Complex z; __real__ z = a.r; __imag__ z = a.i; return z; }
static D dz(double _Complex z) { D a = {__real__ z, __imag__ z}; return a; }
static F fz(float _Complex z) { F a = {__real__ z, __imag__ z}; return a; }

/* On Windows a long double is a double. */
#define SAME(name) \
    D shim_##name(D a) { return dz(name(zd(a))); } \
    F shim_##name##f(F a) { return fz(name##f(zf(a))); } \
    D shim_##name##l(D a) { return dz(name(zd(a))); }
#define REAL(name) \
    double shim_##name(D a) { return name(zd(a)); } \
    float shim_##name##f(F a) { return name##f(zf(a)); } \
    double shim_##name##l(D a) { return name(zd(a)); }

SAME(cexp) SAME(csin) SAME(ccos) SAME(ctan) SAME(csinh) SAME(ccosh) SAME(ctanh)
REAL(cabs) REAL(carg) REAL(creal) REAL(cimag)
D shim_cpow(D a, D b) { return dz(cpow(zd(a), zd(b))); }
F shim_cpowf(F a, F b) { return fz(cpowf(zf(a), zf(b))); }
D shim_cpowl(D a, D b) { return dz(cpow(zd(a), zd(b))); }

int __stdcall DllMainCRTStartup(void *h, unsigned r, void *p) { (void)h, (void)r, (void)p; return 1; }
