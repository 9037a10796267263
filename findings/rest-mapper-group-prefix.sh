#!/usr/bin/env bash
# apimachinery v0.37.2: a REST mapper that knows no group of the given name takes every group that begins with this name, even in
# the middle of a word. "backups.velero.i" names the type of velero.io, and a program that asks whether "jobs.bat" exists is told
# that it does. KindFor does the same. A version in the name turns this off: it needs the exact group. If two groups begin with the
# name, ResourceFor fails as ambiguous, so that a name that worked stops working once a second API is installed.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func main() {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "acme.example.com", Version: "v1", Kind: "Backup"}, meta.RESTScopeNamespace)
	show := func(group, version string) {
		resource, err := mapper.ResourceFor(schema.GroupVersionResource{Group: group, Version: version, Resource: "backups"})
		kind, _ := mapper.KindFor(schema.GroupVersionResource{Group: group, Version: version, Resource: "backups"})
		fmt.Printf("%q %q: %s, %s, no match: %t, ambiguous: %t\n", group, version, resource.Group, kind.Kind,
			meta.IsNoMatchError(err), meta.IsAmbiguousError(err))
	}
	show("acme.example.com", "")
	show("acme", "")
	show("ac", "")
	show("ac", "v1")
	mapper.Add(schema.GroupVersionKind{Group: "accounting.example.com", Version: "v1", Kind: "Backup"}, meta.RESTScopeNamespace)
	fmt.Println("a second group that begins with ac:")
	show("acme", "")
	show("ac", "")
}
END
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
"acme.example.com" "": acme.example.com, Backup, no match: false, ambiguous: false
"acme" "": acme.example.com, Backup, no match: false, ambiguous: false
"ac" "": acme.example.com, Backup, no match: false, ambiguous: false
"ac" "v1": , , no match: true, ambiguous: false
a second group that begins with ac:
"acme" "": acme.example.com, Backup, no match: false, ambiguous: false
"ac" "": , , no match: false, ambiguous: true
END
