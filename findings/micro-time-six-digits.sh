#!/usr/bin/env bash
# apimachinery v0.37.2: metav1.MicroTime, the type of renewTime of a Lease, reads only times with exactly
# six digits after the point. Times without a fraction, or with the three digits of a JavaScript date or
# the nine of Go, are errors, although all are RFC 3339. metav1.Time reads each of them. It keeps the
# fraction in memory but does not write it, so that an object differs from its copy after a round trip.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	for _, fraction := range []string{"", ".123", ".123456", ".123456789"} {
		text := []byte(`"2026-01-02T03:04:05` + fraction + `Z"`)
		var micro metav1.MicroTime
		var second, again metav1.Time
		fmt.Printf("%s\n  MicroTime: error %t\n", text, json.Unmarshal(text, &micro) != nil)
		err := json.Unmarshal(text, &second)
		out, _ := json.Marshal(second)
		_ = json.Unmarshal(out, &again)
		fmt.Printf("  Time: error %t, writes %s, equal %t\n", err != nil, out, second.Equal(&again))
	}
}
END
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
"2026-01-02T03:04:05Z"
  MicroTime: error true
  Time: error false, writes "2026-01-02T03:04:05Z", equal true
"2026-01-02T03:04:05.123Z"
  MicroTime: error true
  Time: error false, writes "2026-01-02T03:04:05Z", equal false
"2026-01-02T03:04:05.123456Z"
  MicroTime: error false
  Time: error false, writes "2026-01-02T03:04:05Z", equal false
"2026-01-02T03:04:05.123456789Z"
  MicroTime: error true
  Time: error false, writes "2026-01-02T03:04:05Z", equal false
END
