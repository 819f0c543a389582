"""The pipeline: profile, lock, check, install, toolkit, script, audit, smoke test, publish. Read it first."""
