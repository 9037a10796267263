package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version says what this program was built from.
func version() string {
	text := "(devel)"
	if built, ok := debug.ReadBuildInfo(); ok {
		text = cmp.Or(built.Main.Version, text)
		for _, setting := range built.Settings {
			if setting.Key == "vcs.revision" {
				text += " " + setting.Value
			}
		}
	}
	return fmt.Sprintf("crdcached %s %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
