package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// What tests need, or ask for.
var (
	// WatchList is that a watch can begin with the objects there are: on by default since 1.34.
	WatchList = Feature{name: "watch-list", has: func(s server) bool { return s.watchList }}
	// SelectableFields is that definitions name fields for field selectors.
	SelectableFields = since("1.31", "selectableFields of custom resources")
	// UnreadyAnswers is that requests are answered while the watch cache of a type is not ready, as that of a
	// version is whose conversion fails. Before, they wait.
	UnreadyAnswers = since("1.31", "answers while a watch cache is not ready")
	// Wording is that errors are put into the words, and carry the codes, that readapi repeats.
	Wording = since("1.35", "errors worded as since Kubernetes 1.35")
	// Shards is the feature gate by which lists and watches are of a shard.
	Shards = since("1.36", "lists of a shard")
	// Padding is that kubectl, which is of the server's version, pads columns to the whole of a cell that it
	// cuts.
	Padding = since("1.37", "kubectl that pads as since 1.37")
)

// since is what came with a minor version of Kubernetes.
func since(minor, name string) Feature {
	return Feature{name: name,
		has: func(s server) bool { return s.version.AtLeast(version.MustParse(minor)) }}
}

// Since is whatever came with a minor version of Kubernetes, such as "1.32".
func Since(minor string) Feature { return since(minor, "Kubernetes "+minor) }

// Needs skips a test on a server without all of these features, and says which it lacks.
func Needs(t testing.TB, features ...Feature) {
	t.Helper()
	var missing []string
	for _, f := range features {
		if !Has(t, f) {
			missing = append(missing, f.name)
		}
	}
	if len(missing) > 0 {
		t.Skipf("needs %s, which this server lacks", strings.Join(missing, ", "))
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

// FirstWatches is how many watches an informer sends until it is synced and follows: without watch-list, one
// that is refused comes before the list.
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
		Param("sendInitialEvents", "true").Param("resourceVersionMatch",
		"NotOlderThan").Param("allowWatchBookmarks", "true").
		Do(ctx).Error()
	if err != nil && !apierrors.IsInvalid(err) {
		return server{}, err
	}
	s.watchList = err == nil
	return s, nil
}
