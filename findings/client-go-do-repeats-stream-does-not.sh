#!/usr/bin/env bash
# k8s.io/client-go v0.37.2: a GET whose connection is cut before the answer is sent again by Request.Do, up to ten
# times with growing pauses and without a word, but not by Request.Stream, which kubectl logs and raw reads use.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

func main() {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) < 4 {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	}))
	config := &rest.Config{Host: server.URL}
	config.GroupVersion, config.NegotiatedSerializer = &scheme.Scheme.PreferredVersionAllGroups()[0], scheme.Codecs
	config.ContentType = "application/json"
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		panic(err)
	}
	_, err = client.Get().AbsPath("/x").Stream(context.Background())
	fmt.Println("Stream:", requests.Swap(0), "requests, failed:", err != nil)
	err = client.Post().AbsPath("/x").Do(context.Background()).Error()
	fmt.Println("Do of a POST:", requests.Swap(0), "requests, failed:", err != nil)
	err = client.Get().AbsPath("/x").Do(context.Background()).Error()
	fmt.Println("Do of a GET:", requests.Swap(0), "requests, failed:", err != nil)
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
Stream: 1 requests, failed: true
Do of a POST: 1 requests, failed: true
Do of a GET: 4 requests, failed: false
END
