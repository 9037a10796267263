#!/usr/bin/env bash
# controller-runtime v0.25.2: HasLabels leaves out a label key that is not valid, without an error. With
# no valid key left the selector matches every object, and DeleteAllOf takes the same option.
# MatchingLabels keeps such a key and matches nothing. Options for labels add up, but a second
# MatchingFields replaces the first one.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	show := func(name string, options ...client.ListOption) {
		list := (&client.ListOptions{}).ApplyOptions(options)
		fmt.Printf("%s: %q, matches an object without labels: %t\n", name, list.LabelSelector,
			list.LabelSelector.Matches(labels.Set{}))
	}
	show("HasLabels, valid key", client.HasLabels{"team"})
	show("HasLabels, key with a space", client.HasLabels{"team name"})
	show("MatchingLabels, key with a space", client.MatchingLabels{"team name": "web"})
	show("MatchingLabels twice", client.MatchingLabels{"a": "1"}, client.MatchingLabels{"b": "2"})
	list := (&client.ListOptions{}).ApplyOptions([]client.ListOption{
		client.MatchingFields{"spec.nodeName": "n1"}, client.MatchingFields{"status.phase": "Running"}})
	fmt.Println("MatchingFields twice:", list.FieldSelector)
}
END
go get sigs.k8s.io/controller-runtime@v0.25.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
HasLabels, valid key: "team", matches an object without labels: false
HasLabels, key with a space: "", matches an object without labels: true
MatchingLabels, key with a space: "team name=web", matches an object without labels: false
MatchingLabels twice: "a=1,b=2", matches an object without labels: false
MatchingFields twice: status.phase=Running
END
