package live

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/readapi"
)

// merge answers a list of objects that several servers have parts of.
//
// All parts are of one version. The parts are asked how far they are, as fresh as the client wants its list, and the lowest
// of that is a version that all of them have reached, and that is fresh enough. Each then lists what it had at exactly that
// version, which its history tells. So a watch from the version of the list on misses nothing.
type merge struct {
	asker
	options   *internalversion.ListOptions
	namespace string
	// token is the version of the list that goes on; 0: a list begins.
	token int64
	start string // of a list that goes on: the key before which all has been listed
	limit int64  // 0: none
}

// versionAttempts is how often the parts are asked for a version that each of them remembers. A part that has just listed
// remembers nothing that was before.
const versionAttempts = 3

// listParts answers a list. An error comes before anything has been written.
func (s *Server) listParts(w http.ResponseWriter, r *http.Request, asked readapi.Request, of share) error {
	m := &merge{asker: asker{s, r, of}, namespace: asked.Namespace}
	var err error
	if m.options, err = readapi.ParseListOptions(r.URL.Query()); err != nil {
		return err
	}
	if m.options.Continue != "" {
		if m.token, m.start, err = readapi.ParseContinueToken(m.options.Continue, asked.Namespace); err != nil {
			return err
		}
		if rv := m.options.ResourceVersion; rv != "" && rv != "0" {
			return apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
	}
	if m.limit = m.options.Limit; m.options.ResourceVersion == "0" {
		m.limit = 0 // as in the parts: any state will do, so that there is nothing to be saved by pages
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	for attempt := 1; ; attempt++ {
		lists, err := m.open(ctx, attempt > 1)
		if err == nil {
			defer closeAll(lists)
			return m.write(w, lists)
		}
		if !apierrors.IsResourceExpired(err) || m.fixed() != "" || attempt == versionAttempts {
			return err
		}
	}
}

// fixed is the version that the client wants the list to be of; empty: there is a choice.
func (m *merge) fixed() string {
	switch {
	case m.token > 0:
		return strconv.FormatInt(m.token, 10)
	case m.options.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		return m.options.ResourceVersion
	}
	return ""
}

// open finds a version, and has all parts list it. fresh is set where what the caches have has turned out not to do.
func (m *merge) open(ctx context.Context, fresh bool) ([]*http.Response, error) {
	version := m.fixed()
	if version == "" {
		var err error
		if version, err = m.version(ctx, fresh); err != nil {
			return nil, err
		}
	}
	query := maps.Clone(m.request.URL.Query())
	query.Del("resourceVersion")
	query.Del("resourceVersionMatch")
	query.Del("limit")
	if m.limit > 0 {
		query.Set("limit", strconv.FormatInt(m.limit, 10))
	}
	switch {
	case m.token > 0: // which says the version
	case m.token < 0:
		number, err := strconv.ParseInt(version, 10, 64)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		query.Set("continue", readapi.NewContinueToken(number, m.namespace, strings.TrimSuffix(m.start, "\x00")))
	default:
		query.Set("resourceVersion", version)
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	}
	return m.all(ctx, question{query: query, accept: m.request.Header.Values("Accept")})
}

// version returns the newest version that all parts have reached.
func (m *merge) version(ctx context.Context, fresh bool) (string, error) {
	q := question{query: url.Values{"limit": {"1"}}, accept: []string{acceptPartials}}
	for _, name := range []string{"labelSelector", "fieldSelector"} { // by which the client may have the right to list
		if values := m.request.URL.Query()[name]; len(values) > 0 {
			q.query[name] = values
		}
	}
	wanted := m.options.ResourceVersion
	q.stale = !fresh && (wanted == "0" || m.token < 0 || maxStale(m.request))
	if wanted != "" && wanted != "0" {
		q.query.Set("resourceVersion", wanted)
		q.query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	answers, err := m.all(ctx, q)
	if err != nil {
		return "", err
	}
	defer closeAll(answers)
	var lowest uint64
	for i, answer := range answers {
		var list listed
		err := json.NewDecoder(answer.Body).Decode(&list)
		var version uint64
		if err == nil {
			version, err = strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64)
		}
		if err != nil {
			return "", m.unanswered(m.of.parts[i], err)
		}
		if i == 0 || version < lowest {
			lowest = version
		}
	}
	return strconv.FormatUint(lowest, 10), nil
}
