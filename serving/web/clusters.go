package web

import (
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
)

// clusterPages are the handlers of all clusters. The first one also serves the paths without a cluster.
type clusterPages []*Handler

// newClusterPages returns the handler of the first cluster. Its Close closes the handlers of all clusters.
func newClusterPages(first Source, options Options) (*Handler, error) {
	var pages clusterPages
	for _, source := range slices.Concat([]Source{first}, options.Clusters) {
		page, err := newHandler(source, options)
		if err == nil && len(options.Clusters) > 0 && (source.Title == "" || pages.find(source.Title) != nil) {
			page.Close()
			err = fmt.Errorf("web: the title %q does not name one of several clusters", source.Title)
		}
		if err != nil {
			pages.close()
			return nil, err
		}
		pages = append(pages, page)
	}
	for _, page := range pages {
		page.clusters = pages
	}
	return pages[0], nil
}

func (p clusterPages) close() {
	for _, page := range p {
		page.Close()
	}
}

func (p clusterPages) find(title string) *Handler {
	found, _ := naming.Find(p, func(page *Handler) bool { return page.source.Title == title })
	return found
}

// clusterChoice is a cluster that the page can show. Problem is set if the cluster cannot be read now.
type clusterChoice struct {
	Title   string    `json:"title"`
	Problem condition `json:"problem,omitzero"`
}

// choices returns all clusters, or nil for a single cluster.
func (p clusterPages) choices(types []*visibleType) (choices []clusterChoice) {
	if len(p) < 2 {
		return nil
	}
	for _, page := range p {
		choice := clusterChoice{Title: page.source.Title}
		for _, c := range conditionsFor(types, page.figures.conditions()) {
			switch status.ConditionType(c.Type) {
			case status.ConditionReachable, status.ConditionAuthenticated:
				if c.Status == string(metav1.ConditionFalse) {
					choice.Problem = c
				}
			}
		}
		choices = append(choices, choice)
	}
	return choices
}

// routes returns the paths of all clusters.
func (p clusterPages) routes() http.Handler {
	if len(p) == 1 {
		return p[0].routes()
	}
	routes := map[*Handler]http.Handler{}
	for _, page := range p {
		routes[page] = page.routes()
	}
	mux := http.NewServeMux()
	mux.Handle("/", routes[p[0]])
	mux.HandleFunc("/clusters/{cluster}/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		page := p.find(r.PathValue("cluster"))
		if page == nil {
			writeError(w, http.StatusNotFound, errPageNotFound)
			return
		}
		clusterRequest := r.Clone(r.Context())
		clusterRequest.URL.Path, clusterRequest.URL.RawPath = "/"+r.PathValue("rest"), ""
		routes[page].ServeHTTP(w, clusterRequest)
	})
	return mux
}
