package gate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"sync"
	"time"
)

const (
	// tokenLife is how long an unused link is valid.
	tokenLife = time.Hour
	// sessionLife is how long a browser stays logged in: a long day.
	sessionLife = 16 * time.Hour
	// maxTokens limits the stored links; the oldest is dropped.
	maxTokens = 16
	// maxSecret is the maximum length of a token or cookie. Longer ones are rejected without hashing.
	maxSecret = 128
)

// digest is the hash of a secret. The time of a lookup by digest reveals nothing about the secret.
type digest = [sha256.Size]byte

// Tokens has the unused links, and issues session cookies. A cookie has an expiry time and an HMAC, so
// there is no limit on their number. Create it with NewTokens. It is safe for concurrent use.
type Tokens struct {
	now func() time.Time
	// name of the cookie. Browsers share cookies among the ports of a host, so pages on one machine need
	// distinct names.
	name string
	key  []byte
	mu   struct {
		sync.Mutex
		links expiringSet
	}
}

// NewTokens returns Tokens without links; now is the clock.
func NewTokens(now func() time.Time) *Tokens {
	t := &Tokens{now: now, name: "crdcache-" + rand.Text()[:8], key: make([]byte, sha256.Size)}
	_, _ = rand.Read(t.key) // never fails
	t.mu.links = expiringSet{lifetime: tokenLife, limit: maxTokens, expiry: map[digest]time.Time{}}
	return t
}

// Issue returns a token that Exchange accepts once.
func (t *Tokens) Issue() string {
	token := rand.Text()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.links.add(sha256.Sum256([]byte(token)), t.now())
	return token
}

// Exchange uses up a token and returns a cookie. It returns false if the token is unknown or has expired.
func (t *Tokens) Exchange(token string) (*http.Cookie, bool) {
	if len(token) > maxSecret {
		return nil, false
	}
	hashed := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.mu.links.contains(hashed, t.now()) {
		return nil, false
	}
	delete(t.mu.links.expiry, hashed)
	return t.session(), true
}

// session returns a cookie that admits a browser.
func (t *Tokens) session() *http.Cookie {
	value := binary.BigEndian.AppendUint64(nil, uint64(t.now().Add(sessionLife).Unix()))
	value = t.sign(value)
	return &http.Cookie{
		Name: t.name, Value: base64.RawURLEncoding.EncodeToString(value), Path: "/",
		MaxAge:   int(sessionLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// sign appends an HMAC to a value.
func (t *Tokens) sign(value []byte) []byte {
	hash := hmac.New(sha256.New, t.key)
	_, _ = hash.Write(value) // never fails
	return hash.Sum(value)
}

// HasSession reports whether a request has a valid session cookie.
func (t *Tokens) HasSession(r *http.Request) bool {
	for _, cookie := range r.CookiesNamed(t.name) {
		if len(cookie.Value) > maxSecret {
			continue
		}
		const expiryLength = 8 // bytes before the HMAC
		value, err := base64.RawURLEncoding.DecodeString(cookie.Value)
		if err != nil || len(value) < expiryLength ||
			!hmac.Equal(value, t.sign(value[:expiryLength:expiryLength])) {
			continue
		}
		if t.now().Unix() < int64(binary.BigEndian.Uint64(value)) {
			return true
		}
	}
	return false
}

// expiringSet is a bounded set of members that expire.
type expiringSet struct {
	lifetime time.Duration
	limit    int
	expiry   map[digest]time.Time
}

func (e *expiringSet) contains(d digest, now time.Time) bool {
	end, ok := e.expiry[d]
	return ok && now.Before(end)
}

func (e *expiringSet) add(d digest, now time.Time) {
	var oldest digest
	for entry, end := range e.expiry {
		if !now.Before(end) {
			delete(e.expiry, entry)
		} else if first, ok := e.expiry[oldest]; !ok || end.Before(first) {
			oldest = entry
		}
	}
	if len(e.expiry) >= e.limit {
		delete(e.expiry, oldest)
	}
	e.expiry[d] = now.Add(e.lifetime)
}
