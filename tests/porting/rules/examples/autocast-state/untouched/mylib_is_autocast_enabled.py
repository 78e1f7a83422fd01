from mylib import is_autocast_enabled

is_autocast_enabled()
