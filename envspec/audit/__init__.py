"""The audit: what is on disk is looked at, not what was promised. Does it link, and has it code for this GPU?"""
