package gate

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func newGate(hosts ...string) *Gate {
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_,
			_ = w.Write([]byte("inside"))
	})
	return New(next, hosts, func(w http.ResponseWriter, _ *http.Request, status int, err error) {
		http.Error(w, err.Error(), status)
	})
}

// ask sends a request and returns the response; headers alternates names and values.
func ask(g *Gate, method, host, target string, cookies []*http.Cookie,
	headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://placeholder"+target, nil)
	r.Host = host
	for _, c := range cookies {
		r.AddCookie(c)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func TestHosts(t *testing.T) {
	tests := []struct {
		host  string
		hosts []string
		want  int
	}{
		{"127.0.0.1:8080", nil, 401}, {"localhost:1", nil, 401}, {"LOCALHOST", nil, 401}, {"[::1]:8080", nil,
			401}, {"127.8.9.1", nil, 401},
		{"evil.example:8080", nil, 421}, {"localhost.evil.example", nil, 421}, {"127.0.0.1.evil.example:80",
			nil, 421}, {"", nil, 421},
		{"0.0.0.0:8080", nil, 421}, {"10.0.0.1:8080", nil, 421}, {"[::]:80", nil, 421}, {"[::1%25lo]:80", nil,
			421}, {"localhost:80@evil", nil, 421},
		{"127.0.0.1:8080 ", nil, 421}, {"2130706433", nil, 421}, {"127.1", nil, 421}, {"localhost.", nil,
			421}, {"::1", nil, 401},
		{"page.example:443", []string{"page.example:443"}, 401}, {"localhost:443",
			[]string{"page.example:443"}, 421}, {"page.example:80", []string{"page.example:443"}, 421},
	}
	for _, tt := range tests {
		if got := ask(newGate(tt.hosts...), "GET", tt.host, "/", nil).Code; got != tt.want {
			t.Errorf("Host %q, served %v: %d, want %d", tt.host, tt.hosts, got, tt.want)
		}
	}
}

func TestOrigins(t *testing.T) {
	const host = "127.0.0.1:8080"
	tests := map[string]struct {
		headers []string
		want    int
	}{
		"typed": {nil, 200},
		"own":   {[]string{"Origin", "http://" + host, "Sec-Fetch-Site", "same-origin"}, 200},
		"link opened": {[]string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "document"}, 200},
		"another site":         {[]string{"Origin", "http://evil.example"}, 403},
		"another port":         {[]string{"Origin", "http://127.0.0.1:9090"}, 403},
		"another scheme":       {[]string{"Origin", "file://" + host}, 403},
		"null":                 {[]string{"Origin", "null"}, 403},
		"empty":                {[]string{"Origin", ""}, 403},
		"two":                  {[]string{"Origin", "http://" + host, "Origin", "http://evil.example"}, 403},
		"with a path":          {[]string{"Origin", "http://" + host + "/x"}, 403},
		"user before the host": {[]string{"Origin", "http://" + host + "@evil.example"}, 403},
		"fetched elsewhere": {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors",
			"Sec-Fetch-Dest", "script"}, 403},
		"another port, image": {[]string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors",
			"Sec-Fetch-Dest", "image"}, 403},
		"framed": {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "iframe"}, 403},
		"followed from a chat": {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "document"}, 200},
	}
	g := newGate()
	cookies := ask(g, "GET", host, g.Login(), nil).Result().Cookies()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ask(g, "GET", host, "/", cookies, tt.headers...).Code; got != tt.want {
				t.Errorf("status %d, want %d", got, tt.want)
			}
		})
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE"} {
		if got := ask(g, method, host, "/", cookies).Code; got != 405 {
			t.Errorf("%s: %d, want 405", method, got)
		}
	}
}

func TestTokenIsValidOnce(t *testing.T) {
	const host = "localhost:8080"
	g := newGate()
	link := g.Login()
	if got := ask(g, "HEAD", host, link, nil).Code; got != 405 {
		t.Errorf("HEAD of the link: %d, want 405", got)
	}
	first := ask(g, "GET", host, link, nil)
	if first.Code != 303 || first.Header().Get("Location") != "./" {
		t.Fatalf("first use of the token: %d to %q, want 303 to ./", first.Code,
			first.Header().Get("Location"))
	}
	cookies := first.Result().Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("the cookies are %v, want one HttpOnly cookie", cookies)
	}
	if again := ask(g, "GET", host, link, nil); again.Code != 401 || len(again.Result().Cookies()) != 0 {
		t.Errorf("second use: %d with cookies %v, want 401 and none", again.Code, again.Result().Cookies())
	}
	if got := ask(g, "GET", host, link, cookies).Code; got != 303 {
		t.Errorf("the used link in the admitted browser: %d, want 303", got)
	}
	if got := ask(g, "GET", host, "/", cookies).Code; got != 200 {
		t.Errorf("with the cookie: %d, want 200", got)
	}
	for name, value := range map[string]string{"forged": "x", "empty": "",
		"the token itself": strings.TrimPrefix(link, "/login?token="), "long": strings.Repeat("x", 4000)} {
		if got := ask(g, "GET", host, "/",
			[]*http.Cookie{{Name: cookies[0].Name, Value: value}}).Code; got != 401 {
			t.Errorf("%s cookie: %d, want 401", name, got)
		}
	}
	if got := ask(newGate(), "GET", host, "/", cookies).Code; got != 401 {
		t.Errorf("cookie of another process: %d, want 401", got)
	}
	for _, target := range []string{"/login", "/login?token=", "/login?token=" + strings.Repeat("A", 5000)} {
		if got := ask(g, "GET", host, target, nil).Code; got != 401 {
			t.Errorf("%.30s: %d, want 401", target, got)
		}
	}
}

func TestTokensEnd(t *testing.T) {
	now := time.Unix(0, 0)
	tokens := NewTokens(func() time.Time { return now })
	late, used := tokens.Issue(), tokens.Issue()
	cookie, ok := tokens.Exchange(used)
	if !ok {
		t.Fatal("Exchange() of a new token = false")
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.AddCookie(cookie)
	now = now.Add(tokenLifetime)
	if _, ok := tokens.Exchange(late); ok {
		t.Error("Exchange() of an expired token = true")
	}
	if !tokens.HasSession(r) {
		t.Error("HasSession() = false after the token expired")
	}
	now = now.Add(sessionLifetime)
	if tokens.HasSession(r) {
		t.Error("HasSession() = true for an expired session")
	}
}

func TestTokensAreBounded(t *testing.T) {
	now := time.Unix(0, 0)
	tokens := NewTokens(func() time.Time { return now })
	first := tokens.Issue()
	var last string
	for range maxTokens {
		now = now.Add(time.Second)
		last = tokens.Issue()
	}
	if _, ok := tokens.Exchange(first); ok {
		t.Error("Exchange() of the oldest token above the limit = true")
	}
	if _, ok := tokens.Exchange(last); !ok {
		t.Error("Exchange() of the newest token = false")
	}
	if n := len(tokens.mu.links.expiry); n > maxTokens {
		t.Errorf("%d tokens are stored, want at most the maximum", n)
	}
}

// TestPolicy verifies that the content security policy allows no inline script or style, and nothing from
// other hosts.
func TestPolicy(t *testing.T) {
	w := ask(newGate(), "GET", "evil.example", "/", nil)
	got := w.Header().Get("Content-Security-Policy")
	if strings.Contains(got, "unsafe") || strings.Contains(got, "*") || strings.Contains(got, "http") ||
		!strings.Contains(got, "default-src 'none'") {
		t.Errorf("Content-Security-Policy = %s, want only own sources", got)
	}
	if w.Header().Get("X-Content-Type-Options") != "nosniff" ||
		w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("the headers are %v, want nosniff and no-store", w.Header())
	}
}

// TestAuthenticated verifies that if the caller authenticates requests, no cookie is needed, and requests
// from other sites are still rejected.
func TestAuthenticated(t *testing.T) {
	g := newGate()
	g = NewAuthenticated(g.handler, nil, g.reject)
	for _, tt := range []struct {
		host    string
		headers []string
		want    int
	}{
		{"localhost", nil, 200},
		{"localhost", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"localhost", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"localhost", []string{"Origin", "https://evil.example"}, 403},
		{"evil.example", nil, 421},
	} {
		w := ask(g, "GET", tt.host, "/", nil, tt.headers...)
		if w.Code != tt.want || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s with %v: %d with %d cookies, want %d", tt.host, tt.headers, w.Code,
				len(w.Result().Cookies()), tt.want)
		}
	}
}

// TestManySessions verifies that new sessions do not end earlier ones.
func TestManySessions(t *testing.T) {
	g := newGate()
	first := ask(g, "GET", "localhost", g.Login(), nil).Result().Cookies()
	for range 1000 {
		ask(g, "GET", "localhost", g.Login(), nil)
	}
	if got := ask(g, "GET", "localhost", "/", first).Code; got != 200 {
		t.Errorf("a request of the first session = %d, want 200", got)
	}
	first[0].Value = first[0].Value[:5] + "B" + first[0].Value[6:]
	if got := ask(g, "GET", "localhost", "/", first).Code; got != 401 {
		t.Errorf("a request of a forged session = %d, want 401", got)
	}
}
