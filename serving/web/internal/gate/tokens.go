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
	// tokenLifetime is how long an unused link is valid.
	tokenLifetime = time.Hour
	// sessionLifetime is how long a browser stays logged in.
	sessionLifetime = 16 * time.Hour
	// maxTokens limits the stored links. The oldest link is dropped.
	maxTokens = 16
	// maxSecretLength limits the length of a token or cookie. Longer values are rejected without hashing.
	maxSecretLength = 128
)

// digest is the hash of a secret. The time of a lookup by digest reveals nothing about the secret.
type digest = [sha256.Size]byte

// Tokens stores the unused one-time links, and issues session cookies. A cookie needs no
// memory here, because it has an expiry time and an HMAC. Create it with NewTokens. It is safe for concurrent
// use.
type Tokens struct {
	now func() time.Time
	// cookieName is random. Browsers share cookies among the ports of a host, so pages on one machine need
	// distinct names.
	cookieName string
	key        []byte
	mu         struct {
		sync.Mutex
		links expiringSet
	}
}

// NewTokens returns Tokens without links. now is the clock.
func NewTokens(now func() time.Time) *Tokens {
	t := &Tokens{now: now, cookieName: "crdcache-" + rand.Text()[:8], key: make([]byte, sha256.Size)}
	_, _ = rand.Read(t.key) // never fails
	t.mu.links = expiringSet{lifetime: tokenLifetime, limit: maxTokens, expiry: map[digest]time.Time{}}
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

// Exchange invalidates a token and returns a cookie. It returns false if the token is unknown or has expired.
func (t *Tokens) Exchange(token string) (*http.Cookie, bool) {
	if len(token) > maxSecretLength {
		return nil, false
	}
	hashed := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.mu.links.contains(hashed, t.now()) {
		return nil, false
	}
	delete(t.mu.links.expiry, hashed)
	return t.newSessionCookie(), true
}

func (t *Tokens) newSessionCookie() *http.Cookie {
	value := binary.BigEndian.AppendUint64(nil, uint64(t.now().Add(sessionLifetime).Unix()))
	value = t.sign(value)
	return &http.Cookie{
		Name: t.cookieName, Value: base64.RawURLEncoding.EncodeToString(value), Path: "/",
		MaxAge:   int(sessionLifetime / time.Second),
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
	for _, cookie := range r.CookiesNamed(t.cookieName) {
		if len(cookie.Value) > maxSecretLength {
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
	expiresAt, ok := e.expiry[d]
	return ok && now.Before(expiresAt)
}

func (e *expiringSet) add(d digest, now time.Time) {
	var oldest digest
	for entry, expiresAt := range e.expiry {
		if !now.Before(expiresAt) {
			delete(e.expiry, entry)
		} else if oldestExpiry, ok := e.expiry[oldest]; !ok || expiresAt.Before(oldestExpiry) {
			oldest = entry
		}
	}
	if len(e.expiry) >= e.limit {
		delete(e.expiry, oldest)
	}
	e.expiry[d] = now.Add(e.lifetime)
}
