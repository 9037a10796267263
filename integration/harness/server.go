package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
)

// Feature is something that not every supported API server has.
type Feature struct {
	name string
	has  func(server) bool
}

// WatchList is that a watch can begin with the objects there are: on by default since 1.34.
var WatchList = Feature{name: "watch-list", has: func(s server) bool { return s.watchList }}

// Since is what came with a minor version of Kubernetes, such as "1.32".
func Since(minor string) Feature {
	return Feature{name: "Kubernetes " + minor, has: func(s server) bool { return s.version.AtLeast(version.MustParse(minor)) }}
}

// Needs skips a test on a server without one of these features, and says which.
func Needs(t testing.TB, features ...Feature) {
	t.Helper()
	for _, f := range features {
		if !Has(t, f) {
			t.Skipf("needs %s, which this server lacks", f.name)
		}
	}
}

// Has reports whether the API server has a feature, for tests that expect something else without.
func Has(t testing.TB, feature Feature) bool {
	t.Helper()
	config, s := Config(t), &current(t).server
	s.once.Do(func() { s.server, s.err = inspect(t.Context(), config) })
	if s.err != nil {
		t.Fatalf("asking what the API server has: %v", s.err)
	}
	return feature.has(s.server)
}

// FirstWatches is how many watches an informer sends until it is synced and follows: without watch-list, one that is
// refused comes before the list.
func FirstWatches(t testing.TB) int {
	t.Helper()
	if Has(t, WatchList) {
		return 1
	}
	return 2
}

// server is what is known of an API server.
type server struct {
	version   *version.Version
	watchList bool
}

// inspect asks an API server what it is, and sends it the shortest of watch-lists, which one without refuses.
func inspect(ctx context.Context, config *rest.Config) (server, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := rest.UnversionedRESTClientFor(unversioned(config))
	if err != nil {
		return server{}, err
	}
	var answer struct {
		GitVersion string `json:"gitVersion"`
	}
	body, err := client.Get().AbsPath("/version").Do(ctx).Raw()
	if err := errors.Join(err, json.Unmarshal(body, &answer)); err != nil {
		return server{}, err
	}
	s := server{}
	if s.version, err = version.ParseSemantic(answer.GitVersion); err != nil {
		return server{}, fmt.Errorf("the version %q: %w", answer.GitVersion, err)
	}
	err = client.Get().AbsPath("/api/v1/namespaces").Param("watch", "true").Param("timeoutSeconds", "1").
		Param("sendInitialEvents", "true").Param("resourceVersionMatch", "NotOlderThan").Param("allowWatchBookmarks", "true").
		Do(ctx).Error()
	if err != nil && !apierrors.IsInvalid(err) {
		return server{}, err
	}
	s.watchList = err == nil
	return s, nil
}
