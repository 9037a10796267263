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

// Feature is a capability that not every supported API server has.
type Feature struct {
	name string
	has  func(server) bool
}

// Features that tests need or query.
var (
	// WatchList means that a watch can begin with the existing objects. It is the default since 1.34.
	WatchList = Feature{name: "watch-list", has: func(s server) bool { return s.watchList }}
	// SelectableFields means that definitions can declare fields for field selectors.
	SelectableFields = since("1.31", "selectableFields of custom resources")
	// UnreadyAnswers means that the server answers requests while a watch cache is not ready, for example
	// after a failed conversion. Earlier versions block these requests.
	UnreadyAnswers = since("1.31", "answers while a watch cache is not ready")
	// ErrorWording means that errors have the text and codes that readapi uses.
	ErrorWording = since("1.35", "the error texts of Kubernetes 1.35")
	// Shards is the feature gate for lists and watches of a shard.
	Shards = since("1.36", "lists of a shard")
	// Padding means that kubectl, which has the version of the server, pads columns to the full width of a
	// truncated cell.
	Padding = since("1.37", "kubectl that pads truncated cells")
)

// since returns the feature that a minor version of Kubernetes introduced.
func since(minor, name string) Feature {
	return Feature{name: name,
		has: func(s server) bool { return s.version.AtLeast(version.MustParse(minor)) }}
}

// Since returns the feature of all servers from a minor version on, such as "1.32".
func Since(minor string) Feature { return since(minor, "Kubernetes "+minor) }

// Require skips the test and names the missing features if the server lacks one of them.
func Require(t testing.TB, features ...Feature) {
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

// Has reports whether the API server has a feature.
func Has(t testing.TB, feature Feature) bool {
	t.Helper()
	config, s := Config(t), &currentSuite(t).server
	s.once.Do(func() { s.server, s.err = inspectServer(t.Context(), config) })
	if s.err != nil {
		t.Fatalf("ask the API server for its features: %v", s.err)
	}
	return feature.has(s.server)
}

// FirstWatches returns the number of watches that an informer sends until it is synced. Without watch-lists,
// a refused one precedes the list.
func FirstWatches(t testing.TB) int {
	t.Helper()
	if Has(t, WatchList) {
		return 1
	}
	return 2
}

// server has the known properties of an API server.
type server struct {
	version   *version.Version
	watchList bool
}

// inspectServer queries the version of an API server, and sends a minimal watch-list to see whether it is
// refused.
func inspectServer(ctx context.Context, config *rest.Config) (server, error) {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
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
		Param("sendInitialEvents", "true").Param("resourceVersionMatch", "NotOlderThan").
		Param("allowWatchBookmarks", "true").Do(ctx).Error()
	if err != nil && !apierrors.IsInvalid(err) {
		return server{}, err
	}
	s.watchList = err == nil
	return s, nil
}
