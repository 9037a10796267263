// Package gate restricts access to the page to one person. It validates Host and Origin, and exchanges a
// one-time token for a cookie. It sets headers so that browsers exchange data only with the page itself.
package gate

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// contentSecurityPolicy permits only files of the page itself. It forbids inline content and scripts from
// text.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
	"img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Gate forwards permitted requests to a handler. Create it with New. It is safe for concurrent use.
type Gate struct {
	hosts   []string
	handler http.Handler
	tokens  *Tokens // nil if the caller authenticates requests
	reject  func(w http.ResponseWriter, r *http.Request, status int, err error)
}

// New returns a Gate that exchanges a one-time link for a cookie, and admits requests with this cookie. hosts
// are the accepted Host headers, with or without ports. By default, loopback addresses and localhost are
// accepted with any port. reject writes the responses to rejected requests.
func New(next http.Handler, hosts []string, reject func(w http.ResponseWriter, r *http.Request, status int,
	err error)) *Gate {
	return &Gate{hosts: hosts, handler: next, tokens: NewTokens(time.Now), reject: reject}
}

// NewAuthenticated works like New for requests that the caller authenticates. The Gate has no links, cookies
// or state, so several replicas can serve one browser.
func NewAuthenticated(next http.Handler, hosts []string, reject func(w http.ResponseWriter, r *http.Request,
	status int, err error)) *Gate {
	return &Gate{hosts: hosts, handler: next, reject: reject}
}

// Login returns the path, with a one-time token, that admits one browser.
func (g *Gate) Login() string { return "/login?token=" + g.tokens.Issue() }

// Allow sets the security headers and validates Host, method and Origin. It rejects invalid requests.
func (g *Gate) Allow(w http.ResponseWriter, r *http.Request) bool {
	setHeaders(w.Header())
	status, err := g.validate(r)
	if err != nil {
		g.reject(w, r, status, err)
	}
	return err == nil
}

func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.Allow(w, r) {
		return
	}
	if g.tokens == nil {
		g.handler.ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/login" {
		g.login(w, r)
		return
	}
	if !g.tokens.HasSession(r) {
		g.reject(w, r, http.StatusUnauthorized,
			errors.New("this browser is not logged in: open the link that crdcache printed, or get a new one"))
		return
	}
	g.handler.ServeHTTP(w, r)
}

func (g *Gate) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // the HEAD request of a link checker must not use up the token
		w.Header().Set("Allow", http.MethodGet)
		g.reject(w, r, http.StatusMethodNotAllowed, errors.New("open the link in a browser"))
		return
	}
	cookie, ok := g.tokens.Exchange(r.URL.Query().Get("token"))
	if !ok && !g.tokens.HasSession(r) {
		g.reject(w, r, http.StatusUnauthorized,
			errors.New("this link was used already or has expired: each link admits one browser once"))
		return
	}
	if ok {
		http.SetCookie(w, cookie)
	}
	w.Header().Set("Location", "./") // relative, because the page may be mounted below another path
	w.WriteHeader(http.StatusSeeOther)
}

func (g *Gate) validate(r *http.Request) (status int, err error) {
	switch {
	case !g.acceptsHost(r.Host):
		// DNS rebinding: the name of another site resolves to this machine.
		return http.StatusMisdirectedRequest, errors.New("this host is not served here")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, errors.New("this page is read-only: use GET or HEAD")
	case !isOwnOrigin(r):
		return http.StatusForbidden, errors.New("requests from other sites are not allowed")
	}
	return 0, nil
}

func (g *Gate) acceptsHost(host string) bool {
	if len(g.hosts) > 0 {
		return slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, host) })
	}
	hostname := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		hostname = h
	}
	if strings.EqualFold(hostname, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(hostname, "[]"))
	return err == nil && address.IsLoopback() && address.Zone() == ""
}

// isOwnOrigin reports whether a request comes from the page itself, or from a user who opens the page.
// Another site may link to the page: then the browser sends no cookie, and the page shows nothing. All other
// requests from other sites are rejected.
func isOwnOrigin(r *http.Request) bool {
	if origin := r.Header.Values("Origin"); len(origin) > 0 {
		u, err := url.Parse(origin[0])
		if len(origin) > 1 || err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Path != "" ||
			!strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
}
