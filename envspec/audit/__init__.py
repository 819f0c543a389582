"""The audit: what is on disk is looked at, not what was promised. Does it link, has it code for this GPU, is it ours?"""
