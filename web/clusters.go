package web

import (
	"fmt"
	"net/http"
	"slices"
)

// clusterPages are the handlers of all clusters. The first one also has the paths without a cluster.
type clusterPages []*Handler

// newClusterPages returns the handler of the first cluster, which closes the others.
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
	for _, page := range p {
		if page.source.Title == title {
			return page
		}
	}
	return nil
}

// titles returns the names of several clusters, or nil for one.
func (p clusterPages) titles() (titles []string) {
	if len(p) < 2 {
		return nil
	}
	for _, page := range p {
		titles = append(titles, page.source.Title)
	}
	return titles
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
			writeError(w, http.StatusNotFound, errNoPage)
			return
		}
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = "/"+r.PathValue("rest"), ""
		routes[page].ServeHTTP(w, inner)
	})
	return mux
}
