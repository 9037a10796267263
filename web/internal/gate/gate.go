// Package gate restricts access to the page to one person: it checks Host and Origin, exchanges a one-time
// token for a cookie, and sets the headers that keep a browser from loading anything from elsewhere or
// sending anything there.
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

// policy is the Content-Security-Policy: only files of the page itself, nothing inline, and no scripts from
// text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Gate guards a handler. Create it with New. It is safe for concurrent use.
type Gate struct {
	hosts   []string
	handler http.Handler
	tokens  *Tokens // nil if the caller authenticates requests
	refused func(w http.ResponseWriter, r *http.Request, status int, err error)
}

// New returns a Gate that admits a browser by a one-time link, which it exchanges for a cookie. hosts are the
// accepted Host headers, with or without ports. By default, loopback addresses and localhost are accepted,
// with any port. refused writes the responses to rejected requests.
func New(next http.Handler, hosts []string, refused func(w http.ResponseWriter, r *http.Request, status int,
	err error)) *Gate {
	return &Gate{hosts: hosts, handler: next, tokens: NewTokens(time.Now), refused: refused}
}

// NewAuthenticated returns a gate like New for requests that the caller authenticates. It has no links,
// cookies or state, so several replicas can serve one browser.
func NewAuthenticated(next http.Handler, hosts []string, refused func(w http.ResponseWriter, r *http.Request,
	status int, err error)) *Gate {
	return &Gate{hosts: hosts, handler: next, refused: refused}
}

// Login returns the path, with a one-time token, that admits one browser.
func (g *Gate) Login() string { return "/login?token=" + g.tokens.Issue() }

// Allow sets the security headers and checks Host, method and Origin. It writes the response to a request
// that fails.
func (g *Gate) Allow(w http.ResponseWriter, r *http.Request) bool {
	setHeaders(w.Header())
	status, err := g.check(r)
	if err != nil {
		g.refused(w, r, status, err)
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
		g.refused(w, r, http.StatusUnauthorized,
			errors.New("this browser is not logged in: open the link that crdcache printed, or get a new one"))
		return
	}
	g.handler.ServeHTTP(w, r)
}

func (g *Gate) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // the HEAD request of a link checker must not use up the token
		w.Header().Set("Allow", http.MethodGet)
		g.refused(w, r, http.StatusMethodNotAllowed, errors.New("open the link in a browser"))
		return
	}
	cookie, ok := g.tokens.Exchange(r.URL.Query().Get("token"))
	if !ok && !g.tokens.HasSession(r) {
		g.refused(w, r, http.StatusUnauthorized,
			errors.New("this link was used already or has expired: each link admits one browser once"))
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
	case !g.acceptsHost(r.Host):
		// DNS rebinding: the name of another site resolves to this machine.
		return http.StatusMisdirectedRequest, errors.New("this host is not served here")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, errors.New("this page is read-only: use GET or HEAD")
	case !ownOrigin(r):
		return http.StatusForbidden, errors.New("requests from other sites are not allowed")
	}
	return 0, nil
}

func (g *Gate) acceptsHost(host string) bool {
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

// ownOrigin reports whether a request comes from the page itself, or from a person who opens it. Another site
// is allowed to link to the page: the browser then sends no cookie, and the page shows nothing. Any other
// request from another site is rejected.
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
