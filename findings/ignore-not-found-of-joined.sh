#!/usr/bin/env bash
# controller-runtime v0.25.2 and apimachinery v0.37.2: one would expect that client.IgnoreNotFound keeps an
# error that holds more than a NotFound. It asks apierrors.IsNotFound, which finds the first error with a
# status in a result of errors.Join and judges by this alone. A cleanup that joins the errors of its deletions
# thus loses a broken connection, and goes on to remove its finalizer. It loses a conflict if the NotFound
# comes first. IsNotFound does not look into the aggregates of apimachinery, so that IgnoreNotFound keeps even
# one that holds nothing but NotFound.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	gone := apierrors.NewNotFound(jobs, "a")
	conflict := apierrors.NewConflict(jobs, "b", errors.New("it has changed"))
	refused := errors.New("connection refused")
	for _, deletions := range []struct {
		text string
		errs []error
	}{
		{"gone, gone", []error{gone, gone}},
		{"gone, refused", []error{gone, refused}},
		{"refused, gone", []error{refused, gone}},
		{"gone, conflict", []error{gone, conflict}},
		{"conflict, gone", []error{conflict, gone}},
	} {
		fmt.Printf("%s: ignored if joined %t, if aggregated %t\n", deletions.text,
			client.IgnoreNotFound(errors.Join(deletions.errs...)) == nil,
			client.IgnoreNotFound(utilerrors.NewAggregate(deletions.errs)) == nil)
	}
}
END
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/apimachinery@v0.37.2 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
gone, gone: ignored if joined true, if aggregated false
gone, refused: ignored if joined true, if aggregated false
refused, gone: ignored if joined true, if aggregated false
gone, conflict: ignored if joined true, if aggregated false
conflict, gone: ignored if joined false, if aggregated false
END
