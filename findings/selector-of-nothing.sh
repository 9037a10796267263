#!/usr/bin/env bash
# apimachinery v0.37.2 and controller-runtime v0.25.2: one would expect that labels.Nothing selects nothing
# with each client. LabelSelectorAsSelector returns it for a nil selector, which selects no object. Its text
# is empty, and clients send the text to the API server, where an empty one selects everything. The same
# option thus finds no object in the cache and with the fake client, and all objects with a client that does
# not cache. DeleteAllOf deletes nothing in a test with the fake client, and sends a request without a
# selector to a server. The text of fields.Nothing is empty, too.
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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const (
	object = `{"kind":"ConfigMap","apiVersion":"v1","metadata":` +
		`{"namespace":"web","name":%q,"resourceVersion":"7"}}`
	end = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":` +
		`{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// serve answers as an API server with two objects. It applies no selector, but prints each query.
func serve(ctx context.Context) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("watch") {
			fmt.Fprintf(w, `{"type":"ADDED","object":`+object+`}{"type":"ADDED","object":`+object+`}`+end, "a", "b")
			w.(http.Flusher).Flush()
			<-ctx.Done()
			return
		}
		fmt.Printf("  the server gets %s with the query %q\n", r.Method, r.URL.RawQuery)
		fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","items":[`+object+`,`+object+`]}`, "a", "b")
	}))
}

func main() {
	selector := must(metav1.LabelSelectorAsSelector(nil))
	fmt.Printf("matches an object: %t, text: %q\n", selector.Matches(labels.Set{"team": "a"}), selector)
	again := must(labels.Parse(selector.String()))
	fmt.Println("read from its text, matches an object:", again.Matches(labels.Set{"team": "a"}))
	fmt.Printf("text of the selector of fields: %q\n", fields.Nothing())

	ctx, cancel := context.WithCancel(context.Background())
	server := serve(ctx)
	config := &rest.Config{Host: server.URL}
	config.ContentType = "application/json"
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	objects := must(cache.New(config, cache.Options{Scheme: scheme.Scheme, Mapper: mapper}))
	go func() { _ = objects.Start(ctx) }()
	objects.WaitForCacheSync(ctx)
	direct := must(client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: mapper}))
	inTest := fake.NewClientBuilder().WithObjects(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "b"}}).Build()

	nothing := client.MatchingLabelsSelector{Selector: selector}
	list := func(reader client.Reader, options ...client.ListOption) int {
		var found corev1.ConfigMapList
		if err := reader.List(ctx, &found, options...); err != nil {
			panic(err)
		}
		return len(found.Items)
	}
	fmt.Println("cache: all", list(objects), "selected", list(objects, nothing))
	fmt.Println("fake client: all", list(inTest), "selected", list(inTest, nothing))
	fmt.Println("client: selected", list(direct, nothing))
	for _, deleter := range []client.Client{inTest, direct} {
		if err := deleter.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("web"), nothing); err != nil {
			panic(err)
		}
	}
	fmt.Println("fake client: left after DeleteAllOf", list(inTest))
	cancel()
	server.Close()
}
END
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/apimachinery@v0.37.2 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
matches an object: false, text: ""
read from its text, matches an object: true
text of the selector of fields: ""
cache: all 2 selected 0
fake client: all 2 selected 0
  the server gets GET with the query ""
client: selected 2
  the server gets DELETE with the query ""
fake client: left after DeleteAllOf 2
END
