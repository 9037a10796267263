#!/usr/bin/env bash
# k8s.io/client-go v0.37.2: a reflector whose server refuses connections does not end with its context. It first sleeps
# to the end of its current pause, which grows to 30 seconds and more. Programs that wait for their informers at
# shutdown are killed instead while the API server is down. While the server answers with errors, it ends at once.
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
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// end returns how long an informer runs on after its context ended during an outage.
func end(host string) time.Duration {
	client := dynamic.NewForConfigOrDie(&rest.Config{Host: host})
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Informer()
	_ = informer.SetWatchErrorHandler(func(*cache.Reflector, error) {})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	time.Sleep(15 * time.Second)
	cancel()
	start := time.Now()
	<-done
	return time.Since(start)
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(os.NewFile(0, ""))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "down", http.StatusServiceUnavailable)
	}))
	fmt.Println("errors: ends within half a second:", end(server.URL) < time.Second/2)
	server.Close()
	fmt.Println("refused: ends within half a second:", end(server.URL) < time.Second/2)
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
errors: ends within half a second: true
refused: ends within half a second: false
END
