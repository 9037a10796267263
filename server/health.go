package server

import (
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/server/healthz"
)

// typesPath tells of each type how it is doing. Like every path but the plain health checks it needs the
// right to get it.
const typesPath = "/readyz/types"

// readiness is ready when every type is settled. The reasons are for the log and for typesPath.
func (c *cache) readiness() healthz.HealthChecker {
	return healthz.NamedCheck("caches", func(*http.Request) error { return c.ready() })
}

// serveConditions writes a line for each type, in the form of the health checks of a kube-apiserver.
func (c *cache) serveConditions(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	err := c.ready()
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	for _, condition := range c.conditions() {
		sign := "-"
		if condition.good {
			sign = "+"
		}
		// the client has gone: nobody is left to tell
		fmt.Fprintf(w, "[%s]%s %s\n", sign, condition.name, condition.text)
	}
	if err != nil {
		fmt.Fprintf(w, "not ready: %v\n", err)
		return
	}
	fmt.Fprintln(w, "ready")
}
