"""The rules, a module a topic. A rule says what must hold, yields a finding for each place where it does not."""
