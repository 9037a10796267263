#!/usr/bin/env bash
# client-go v0.37.2: one would expect that ListPager.List returns the type of list that its page function
# returns, because its comment promises a single list that is read in chunks. It does so for one page. From
# two pages on it returns the List of apimachinery's internal version. A conversion to PodList thus works up
# to 500 objects, the default page size, and fails with more. A program that writes the result as JSON writes
# "items" in the first case, and "Items" without a kind in the second. If the second page has expired, the
# first type is back.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// pages returns a page function for the given number of pods. It honors the limit as an API server does.
func pages(pods int, expires bool) pager.ListPageFunc {
	return func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if expires && options.Continue != "" {
			return nil, apierrors.NewResourceExpired("the continue token has expired")
		}
		list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		first := len(options.Continue)
		for i := first; i < pods; i++ {
			if options.Limit > 0 && int64(i-first) == options.Limit {
				list.Continue = string(make([]byte, i))
				break
			}
			list.Items = append(list.Items, corev1.Pod{})
		}
		return list, nil
	}
}

func main() {
	for _, run := range []struct {
		pods    int
		expires bool
	}{{500, false}, {501, false}, {501, true}} {
		reader := pager.New(pages(run.pods, run.expires))
		list, paginated, err := reader.List(context.Background(), metav1.ListOptions{})
		if err != nil {
			panic(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			panic(err)
		}
		keys := map[string]json.RawMessage{}
		if err := json.Unmarshal(text, &keys); err != nil {
			panic(err)
		}
		fmt.Printf("%d pods, the second page expires %t: ", run.pods, run.expires)
		fmt.Printf("%T, paginated %t, in JSON:", list, paginated)
		for _, key := range []string{"kind", "metadata", "items", "Items"} {
			if _, found := keys[key]; found {
				fmt.Print(" ", key)
			}
		}
		fmt.Println()
	}
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
500 pods, the second page expires false: *v1.PodList, paginated false, in JSON: kind metadata items
501 pods, the second page expires false: *internalversion.List, paginated true, in JSON: Items
501 pods, the second page expires true: *v1.PodList, paginated true, in JSON: kind metadata items
END
