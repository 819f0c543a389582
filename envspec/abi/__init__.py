"""What compiled extensions and the libraries they are loaded with agree on."""
