import polhode as ph, traceback
def ending(t): return ph.math.sqrt(0.6 - t), 0.3, 0.1
def logs(t): return ph.math.log(0.6 - t), 0.3, 0.1
def power(t): return (0.6 - t)**0.5, 0.3, 0.1
def asin(t): return ph.math.asin(t+0.4), 0.3, 0.1
for g in ("SO(3)","SU(2)"):
  for f in (ending,logs,power,asin):
    for m in ("taylor(6)","munthe_kaas(gauss2)","crouch_grossman(rk4)"):
      for d in (None,20):
        try:
            s=ph.lie.solve(g,f,None,m,dt=1/16,steps=20,digits=d); print("RAN",g,f.__name__,m,d, s.y[-1].ravel()[:2])
        except Exception as e: print(type(e).__name__, g,f.__name__,m,d, str(e)[:90])
for f in (ending,logs,power,asin):
  for d in (None,20):
    for k in ({"dt":1/16},{"tol":1e-8}):
        try:
            s=ph.kinematics(f,1.25,digits=d,**k); print("RAN",f.__name__,d,k, s.quaternion[-1])
        except Exception as e: print(type(e).__name__, f.__name__,d,k, str(e)[:90])
