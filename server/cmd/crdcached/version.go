package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version returns the version, revision and platform of this program.
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
