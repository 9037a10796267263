package server

import (
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/server/healthz"
)

// typesPath reports the status of each type. As all paths except the plain health checks, it needs
// authorization.
const typesPath = "/readyz/types"

// readiness returns a check that fails until every type has synced or is known to be unreadable. The reasons
// are logged, and shown at typesPath.
func (c *cache) readiness() healthz.HealthChecker {
	return healthz.NamedCheck("caches", func(*http.Request) error { return c.ready() })
}

// serveTypeChecks writes a line for each type, in the format of kube-apiserver's health checks.
func (c *cache) serveTypeChecks(w http.ResponseWriter) {
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
		// errors mean that the client has disconnected.
		fmt.Fprintf(w, "[%s]%s %s\n", sign, condition.name, condition.text)
	}
	if err != nil {
		fmt.Fprintf(w, "not ready: %v\n", err)
		return
	}
	fmt.Fprintln(w, "ready")
}
