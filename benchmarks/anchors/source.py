"""Source of explicit Runge-Kutta pairs written for heavy tops: C++ with SIMD vectors, and CUDA.

Each lane or thread has its own adaptive step. In C++ a lane takes the next top when its own has arrived; in CUDA a
thread has one top. The equations and factors are those of `race/cases.py`. Tableaus: scipy's DOP853 and RK45, and
Verner's 8(7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from scipy.integrate import DOP853, RK45

from polhode.methods.tables.verner87 import EMBEDDED, VERNER


class Anchor(NamedTuple):
    """A pair in doubles: the rows of a, the weights b, their difference from the embedded ones, the order's root."""

    name: str
    a: Sequence[Sequence[float]]
    b: Sequence[float]
    e: Sequence[float]
    root: str


def anchors() -> Iterator[Anchor]:
    """Yield the pairs."""
    n = DOP853.n_stages
    yield Anchor("dop853", [[float(x) for x in DOP853.A[i, :i]] for i in range(n)], _floats(DOP853.B),
                 _floats(DOP853.E5[:n]), "P8")  # fmt: skip
    b = _floats(VERNER.b)
    difference = [float(x) - y for x, y in zip(EMBEDDED, b, strict=True)]
    yield Anchor("vern8", [_floats(row[:i]) for i, row in enumerate(VERNER.a)], b, difference, "P8")
    rows = [[float(RK45.A[i, j]) for j in range(i)] for i in range(6)]
    yield Anchor("dp5", [*rows, _floats(RK45.B)], [*_floats(RK45.B), 0.0], _floats(RK45.E), "P5")


def _floats(numbers: Any) -> list[float]:
    return [float(x) for x in numbers]


def _sum(weights: Sequence[float], what: str) -> str:
    return "+".join(f"{w!r}*{what}[{j}][n]" for j, w in enumerate(weights) if w).replace("+-", "-")


def _attempts(number: str, qualifiers: str, zero: str, unroll: str) -> str:
    """Functions attempt_NAME(y, p, h, z): one step; they return the squared length of the error estimate."""
    lines = [
        f"{qualifiers} void rates(const {number}*y,const {number}*p,{number}*k)"
        f"{{{number} a=y[0],b=y[1],c=y[2],d=y[3],u=y[4],v=y[5],w=y[6];",
        "k[0]=-0.5*(b*u+c*v+d*w);k[1]=0.5*(a*u+c*w-d*v);k[2]=0.5*(a*v+d*u-b*w);k[3]=0.5*(a*w+b*v-c*u);",
        "k[4]=p[0]*(v*w)+p[3]*(c*d+a*b);k[5]=p[1]*(w*u)+p[4]*(b*d-a*c);k[6]=p[2]*(u*v);}",
    ]
    for name, a, b, e, _ in anchors():
        lines.append(
            f"{qualifiers} {number} attempt_{name}(const {number}*y,const {number}*p,{number} h,{number}*z)"
            f"{{{number} k[{len(b)}][7],x[7];rates(y,p,k[0]);"
        )
        lines += [
            f" {unroll}for(int n=0;n<7;n++)x[n]=y[n]+h*({_sum(a[i], 'k')});rates(x,p,k[{i}]);" for i in range(1, len(b))
        ]
        lines.append(
            f" {number} err={zero};{unroll}for(int n=0;n<7;n++){{z[n]=y[n]+h*({_sum(b, 'k')});"
            f"{number} g=h*({_sum(e, 'k')});err+=g*g;}}return err;}}"
        )
    return "\n".join(lines)


_CPP_HEAD = """#include <math.h>
#define W 8
typedef double V __attribute__((vector_size(64)));
typedef long long M __attribute__((vector_size(64)));
static inline V vsqrt(V x){V r;for(int i=0;i<W;i++)r[i]=__builtin_sqrt(x[i]);return r;}
static inline V vmin(V a,V b){return a<b?a:b;}
static inline V vmax(V a,V b){return a>b?a:b;}
/* x = (err/tol)^2; the factor of the next step */
static inline V P8(V x){return 1.0/vsqrt(vsqrt(vsqrt(vsqrt(x))));}
static inline V P5(V x){V r;for(int i=0;i<W;i++)r[i]=pow(x[i],-0.1);return r;}
"""

_CPP_RUN = """
extern "C" long run_NAME(long N,long first,long last,const double*Y,const double*P,double tol,double end,double h0,
                         double*out){
 V y[7],p[5],t={0},h,z[7];long id[W];long next=first,steps=0;int live=0;
 for(int i=0;i<W;i++){id[i]=-1;h[i]=h0;t[i]=0;for(int n=0;n<7;n++)y[n][i]=n==0;for(int n=0;n<5;n++)p[n][i]=0;
  if(next<last){id[i]=next;for(int n=0;n<7;n++)y[n][i]=Y[n*N+next];
   for(int n=0;n<5;n++)p[n][i]=P[n*N+next];next++;live++;}}
 double it2=1.0/(tol*tol);
 while(live){
  V hh=vmin(h,end-t);
  V err=attempt_NAME(y,p,hh,z);
  V x=vmax(err*it2,(V){0}+1e-12);
  M ok=x<=1.0;
  for(int n=0;n<7;n++)y[n]=ok?z[n]:y[n];
  t=ok?t+hh:t;
  V f=vmin(vmax(0.9*ROOT(x),(V){0}+0.2),(V){0}+4.0);
  V g=hh*f; h=ok&(M)(hh<h)?vmax(g,h):g; steps+=W;
  M done=t>=end-1e-14;
  int any=0;for(int i=0;i<W;i++)any|=done[i]!=0;
  if(any)for(int i=0;i<W;i++)if(done[i]){
   if(id[i]>=0){for(int n=0;n<7;n++)out[n*N+id[i]]=y[n][i];live--;id[i]=-1;}
   t[i]=0;
   if(next<last){id[i]=next;for(int n=0;n<7;n++)y[n][i]=Y[n*N+next];
    for(int n=0;n<5;n++)p[n][i]=P[n*N+next];next++;live++;}
   else{for(int n=0;n<7;n++)y[n][i]=n==0;for(int n=0;n<5;n++)p[n][i]=0;}
  }
 }
 return steps;}
"""

_CUDA_HEAD = """
__device__ __forceinline__ double P8(double x){return 1.0/sqrt(sqrt(sqrt(sqrt(x))));}
__device__ __forceinline__ double P5(double x){return (double)powf((float)x,-0.1f);}
"""

_CUDA_RUN = """
extern "C" __global__ void __launch_bounds__(128) run_NAME(long N,const double*__restrict__ Y,
  const double*__restrict__ P,double tol,double end,double h0,double*out){
 long i=blockIdx.x*(long)blockDim.x+threadIdx.x;if(i>=N)return;
 double y[7],p[5],z[7],t=0,h=h0,it2=1.0/(tol*tol);
 for(int n=0;n<7;n++)y[n]=Y[n*N+i];for(int n=0;n<5;n++)p[n]=P[n*N+i];
 while(t<end-1e-14){double hh=fmin(h,end-t);double x=fmax(attempt_NAME(y,p,hh,z)*it2,1e-12);
  double f=fmin(fmax(0.9*ROOT(x),0.2),4.0),g=hh*f;
  if(x<=1.0){for(int n=0;n<7;n++)y[n]=z[n];t+=hh;h=hh<h?fmax(g,h):g;}else h=g;}
 for(int n=0;n<7;n++)out[n*N+i]=y[n];}
"""


def cpp() -> str:
    """Return C++ with functions run_NAME(N, first, last, Y, P, tol, end, h0, out): the tops from first to last."""
    attempts = _attempts("V", "static inline __attribute__((always_inline))", "(V){0}", "")
    return _CPP_HEAD + attempts + "".join(_named(_CPP_RUN))


def cuda() -> str:
    """Return CUDA with kernels run_NAME(N, Y, P, tol, end, h0, out), one thread for each top."""
    attempts = _attempts("double", "__device__ __forceinline__", "0.0", '_Pragma("unroll") ')
    return _CUDA_HEAD + attempts + "".join(_named(_CUDA_RUN))


def _named(text: str) -> Iterator[str]:
    return (text.replace("NAME", anchor.name).replace("ROOT", anchor.root) for anchor in anchors())
