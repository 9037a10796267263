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
	// tokenLife is how long a link that nobody opens is good.
	tokenLife = time.Hour
	// sessionLife is how long a browser stays let in: a long day.
	sessionLife = 16 * time.Hour
	// maxTokens bounds what is remembered; the oldest makes way.
	maxTokens = 16
	// maxSecret bounds what is hashed of a request.
	maxSecret = 128
)

// digest is what is kept of a secret. Looking a digest up in a map takes a time that says nothing about the
// secret.
type digest = [sha256.Size]byte

// Tokens are the links that have been given out, and what lets browsers in: a cookie that says until when,
// sealed by a key of the process, so that there may be any number of them. They are safe for concurrent use,
// and made by NewTokens.
type Tokens struct {
	now func() time.Time
	// name is that of the cookie. Browsers do not tell the ports of a host apart, so that several pages of
	// one machine would otherwise overwrite each other's.
	name string
	key  []byte
	mu   struct {
		sync.Mutex
		links expiring
	}
}

// NewTokens returns tokens without any, by a clock.
func NewTokens(now func() time.Time) *Tokens {
	t := &Tokens{now: now, name: "crdcache-" + rand.Text()[:8], key: make([]byte, sha256.Size)}
	_, _ = rand.Read(t.key) // never fails
	t.mu.links = expiring{life: tokenLife, most: maxTokens, ends: map[digest]time.Time{}}
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

// Exchange uses a token up and returns the cookie that it buys; false for what is no token, or no longer one.
func (t *Tokens) Exchange(token string) (*http.Cookie, bool) {
	if len(token) > maxSecret {
		return nil, false
	}
	hashed := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.mu.links.has(hashed, t.now()) {
		return nil, false
	}
	delete(t.mu.links.ends, hashed)
	return t.session(), true
}

// session returns a cookie that lets a browser in.
func (t *Tokens) session() *http.Cookie {
	value := binary.BigEndian.AppendUint64(nil, uint64(t.now().Add(sessionLife).Unix()))
	value = t.seal(value)
	return &http.Cookie{
		Name: t.name, Value: base64.RawURLEncoding.EncodeToString(value), Path: "/",
		MaxAge:   int(sessionLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// seal appends what nobody can who has not the key.
func (t *Tokens) seal(value []byte) []byte {
	hash := hmac.New(sha256.New, t.key)
	_, _ = hash.Write(value) // never fails
	return hash.Sum(value)
}

// Admits reports whether a request has a cookie of a session.
func (t *Tokens) Admits(r *http.Request) bool {
	for _, cookie := range r.CookiesNamed(t.name) {
		if len(cookie.Value) > maxSecret {
			continue
		}
		const said = 8 // bytes before the seal
		value, err := base64.RawURLEncoding.DecodeString(cookie.Value)
		if err != nil || len(value) < said || !hmac.Equal(value, t.seal(value[:said:said])) {
			continue
		}
		if t.now().Unix() < int64(binary.BigEndian.Uint64(value)) {
			return true
		}
	}
	return false
}

// expiring is a bounded set whose members end after a while.
type expiring struct {
	life time.Duration
	most int
	ends map[digest]time.Time
}

func (e *expiring) has(d digest, now time.Time) bool {
	end, ok := e.ends[d]
	return ok && now.Before(end)
}

func (e *expiring) add(d digest, now time.Time) {
	var oldest digest
	for known, end := range e.ends {
		if !now.Before(end) {
			delete(e.ends, known)
		} else if first, ok := e.ends[oldest]; !ok || end.Before(first) {
			oldest = known
		}
	}
	if len(e.ends) >= e.most {
		delete(e.ends, oldest)
	}
	e.ends[d] = now.Add(e.life)
}
