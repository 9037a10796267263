// Package gate lets only the person in front of the machine see the page: it checks Host and Origin,
// exchanges a one-time token for a cookie, and sets the headers that keep a browser from loading or sending
// anything elsewhere.
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

// policy is the Content-Security-Policy: nothing but files of the page itself, nothing inline, and no way to
// make a script of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Gate is a guard before a handler. It is safe for concurrent use, and made by New.
type Gate struct {
	hosts   []string
	next    http.Handler
	tokens  *Tokens // nil if the caller authenticates requests
	refused func(w http.ResponseWriter, r *http.Request, status int, err error)
}

// New returns a gate before a handler, with links and cookies. Hosts are what the Host of a request may be,
// each a name with or without a port; without any, it has to be a loopback address or localhost, with any
// port. What is refused is answered by refused.
func New(next http.Handler, hosts []string, refused func(w http.ResponseWriter, r *http.Request, status int,
	err error)) *Gate {
	return &Gate{hosts: hosts, next: next, tokens: NewTokens(time.Now), refused: refused}
}

// NewAuthenticated returns a gate like New for requests that the caller has authenticated: it needs no link
// and no cookie, keeps no state, and serves equally behind each of several replicas.
func NewAuthenticated(next http.Handler, hosts []string, refused func(w http.ResponseWriter, r *http.Request,
	status int, err error)) *Gate {
	return &Gate{hosts: hosts, next: next, refused: refused}
}

// Login returns the path, with its query, that lets one browser in, once.
func (g *Gate) Login() string { return "/login?token=" + g.tokens.Issue() }

// Allow sets the security headers and checks Host, method and Origin. It answers a request that fails.
func (g *Gate) Allow(w http.ResponseWriter, r *http.Request) bool {
	setHeaders(w.Header())
	status, err := g.check(r)
	if err != nil {
		g.refused(w, r, status, err)
	}
	return err == nil
}

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.Allow(w, r) {
		return
	}
	if g.tokens == nil {
		g.next.ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/login" {
		g.login(w, r)
		return
	}
	if !g.tokens.Admits(r) {
		g.refused(w, r, http.StatusUnauthorized,
			errors.New("this browser has not been let in: open the link that crdcache printed, or ask it for another one"))
		return
	}
	g.next.ServeHTTP(w, r)
}

func (g *Gate) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // a HEAD of a link checker must not use the token up
		w.Header().Set("Allow", http.MethodGet)
		g.refused(w, r, http.StatusMethodNotAllowed, errors.New("the link is to be opened in a browser"))
		return
	}
	cookie, ok := g.tokens.Exchange(r.URL.Query().Get("token"))
	if !ok && !g.tokens.Admits(r) {
		g.refused(w, r, http.StatusUnauthorized,
			errors.New("this link has been used, or is too old: each lets one browser in, once"))
		return
	}
	if ok {
		http.SetCookie(w, cookie)
	}
	w.Header().Set("Location", "./") // relative, because the page may be mounted below another path
	w.WriteHeader(http.StatusSeeOther)
}

func (g *Gate) check(r *http.Request) (status int, err error) {
	switch {
	case !g.known(r.Host):
		// A name of somebody else's that leads to this machine: DNS rebinding.
		return http.StatusMisdirectedRequest, errors.New("this host is not served here")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, errors.New("this page only reads")
	case !ownOrigin(r):
		return http.StatusForbidden, errors.New("requests of other sites are refused")
	}
	return 0, nil
}

// known reports whether a Host is one of those that are served.
func (g *Gate) known(host string) bool {
	if len(g.hosts) > 0 {
		return slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, host) })
	}
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		name = h
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && address.IsLoopback() && address.Zone() == ""
}

// ownOrigin reports whether a request is made by the page itself, or by a person who opens it. Navigation
// from another site may open the page, which sends no cookie then and shows nothing, but may not fetch
// anything.
func ownOrigin(r *http.Request) bool {
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
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
}
