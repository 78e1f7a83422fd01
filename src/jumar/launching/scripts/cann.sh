# CANN's scripts set paths; they read variables that may be unset.
if [ -z "${ASCEND_OPP_PATH:-}" ]; then
    for place in /usr/local/Ascend "$HOME/Ascend"; do
        for part in ascend-toolkit nnae cann tfplugin; do
            if [ -f "$place/$part/set_env.sh" ]; then
                set +eu
                # shellcheck disable=SC1090,SC1091
                . "$place/$part/set_env.sh"
                set -eu
            fi
        done
    done
fi
