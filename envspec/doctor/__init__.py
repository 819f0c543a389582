"""`envspec doctor`: is this machine fit for the profile, and does anything on it mislead the compilers?

    host      Host        all that is read of the machine, below one root
    engine    Check       the rows, and running them: guarded, in order, slow ones last
    checks/   findings    one small function a question

It reads. It writes nothing, asks no network, imports no torch and no CUDA.
"""
