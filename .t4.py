import sys; sys.path.insert(0,'.')
import polhode as ph
from validation.net.cases import *
for c in ("free","potential","smooth","states","varying body"):
  case=CASES[c]
  for kw in ({"method":"mkrk(rk4)" if c!="states" and c!="varying body" else "verner87","dt":.05},{"step_tol":1e-9},{"tol":1e-9},{"method":"imidm","dt":.05}):
    try: s=ph.solve(case.problem(fails=True),t_end=2.0,digits=20,**kw); print("RAN",c,kw,s.t[-1],s.momentum[-1])
    except Exception as e: print(type(e).__name__,c,kw,str(e)[:80])
