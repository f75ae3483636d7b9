"""Providers: whoever answers a model request, behind one promise."""
