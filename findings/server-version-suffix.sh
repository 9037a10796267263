#!/usr/bin/env bash
# apimachinery v0.37.2: version.Parse takes the suffix of a vendor for a pre-release when it follows a
# hyphen, as in v1.30.0-gke.100. This server then does not satisfy AtLeast 1.30.0, and a feature stays
# off. A suffix after a plus sign, as in v1.30.0+k3s1, has no effect. ParseGeneric drops both, but takes
# a release candidate for the release.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

func main() {
	for _, text := range []string{"v1.30.0", "v1.30.0-gke.100", "v1.30.0+k3s1", "v1.30.0-rc.1"} {
		parsed, err := version.Parse(text)
		if err != nil {
			panic(err)
		}
		generic := version.MustParseGeneric(text)
		fmt.Printf("%s at least 1.30.0: Parse %t, ParseGeneric %t\n", text,
			parsed.AtLeast(version.MustParse("1.30.0")), generic.AtLeast(version.MustParseGeneric("1.30.0")))
	}
}
END
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
v1.30.0 at least 1.30.0: Parse true, ParseGeneric true
v1.30.0-gke.100 at least 1.30.0: Parse false, ParseGeneric true
v1.30.0+k3s1 at least 1.30.0: Parse true, ParseGeneric true
v1.30.0-rc.1 at least 1.30.0: Parse false, ParseGeneric true
END
