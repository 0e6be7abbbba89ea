"""phrasetool: learn what phrases mean, then make phrase tables smaller and better.

The package knows phrases, vectors, models and rules.  It knows no Moses syntax (that is `moses_compat`), prints
nothing and never exits the interpreter.  Heavy imports (numba, torch) happen in the modules that need them.
"""

__version__ = "0.1.0"
