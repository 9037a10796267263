package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// reviewsPerSecond bounds the reviews of all users together, and reviewBurst those at once. Users take
	// turns: each has reviewsOfUser under way at most.
	reviewsPerSecond = 100
	reviewBurst      = 200
	reviewsOfUser    = 4
	// reviewRound is how many rights of a user are chosen at once.
	reviewRound = 64
	// allowedAge and deniedAge are the ages at which an answer is asked for again, and maxAllowedAge the one
	// at which a right counts as unknown. A refusal counts until there is another answer.
	allowedAge    = 30 * time.Second
	deniedAge     = time.Minute
	maxAllowedAge = 5 * time.Minute
	// unusedAge is how long rights are remembered that no page looks at.
	unusedAge = time.Minute
	// retryAge is how long a review that failed rests.
	retryAge = 5 * time.Second
)

// rights remembers what users may list. It has one set of answers for each user, which all their pages share,
// and asks for missing and old ones in the background. It is safe for concurrent use.
type rights struct {
	authorizer authorizer.UnconditionalAuthorizer
	limiter    *rate.Limiter
	ctx        context.Context
	end        context.CancelFunc
	asking     sync.WaitGroup
	mu         struct {
		sync.Mutex
		users map[string]*userRights
	}
}

// listRight is the right to list a type in a namespace, or in all ("").
type listRight struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// userRights are the answers for one user. They are guarded by the lock of the rights.
type userRights struct {
	user    user.Info
	answers map[listRight]*answer
	asking  bool
	changed chan struct{} // closed when there are new answers
	now     time.Time     // of the present look
}

// answer is that of the authorizer.
type answer struct {
	allowed bool
	at      time.Time // zero: there was none yet
	tried   time.Time // the last try that failed, with err
	err     error
	used    time.Time
}

func newRights(from authorizer.UnconditionalAuthorizer) *rights {
	r := &rights{authorizer: from, limiter: rate.NewLimiter(reviewsPerSecond, reviewBurst)}
	r.ctx, r.end = context.WithCancel(context.Background())
	r.mu.users = map[string]*userRights{}
	return r
}

// close ends all reviews. No look may follow.
func (r *rights) close() {
	r.end()
	r.asking.Wait()
}

// look calls a function that reads the rights of a user, which must not block, and has those asked for that
// are missing or old. It returns a channel that is closed when there are new answers.
func (r *rights) look(u user.Info, read func(*userRights)) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	id := userID(u)
	of := r.mu.users[id]
	if of == nil {
		for old, other := range r.mu.users {
			if other.forget(now); len(other.answers) == 0 && !other.asking {
				delete(r.mu.users, old)
			}
		}
		of = &userRights{user: u, answers: map[listRight]*answer{}, changed: make(chan struct{})}
		r.mu.users[id] = of
	}
	of.now = now
	read(of)
	if !of.asking && len(of.due(now)) > 0 {
		of.asking = true
		r.asking.Add(1)
		go r.ask(of) // ended by close, or when nothing is due
	}
	return of.changed
}

// userID is equal for users who have the same rights.
func userID(u user.Info) string {
	id, _ := json.Marshal([]any{u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra()}) // never fails
	return string(id)
}

var errUnasked = errors.New("not asked yet")

// may returns whether the user has a right. The error says why that is not known.
func (of *userRights) may(right listRight) (bool, error) {
	a := of.answers[right]
	if a == nil {
		a = &answer{}
		of.answers[right] = a
	}
	a.used = of.now
	switch {
	case !a.at.IsZero() && (!a.allowed || of.now.Sub(a.at) < maxAllowedAge):
		return a.allowed, nil
	case a.err != nil:
		return false, a.err
	}
	return false, errUnasked
}

func (of *userRights) forget(now time.Time) {
	for right, a := range of.answers {
		if now.Sub(a.used) > unusedAge {
			delete(of.answers, right)
		}
	}
}

// due returns the rights to ask for next: those granted before, then those never answered, then those refused
// before.
func (of *userRights) due(now time.Time) []listRight {
	of.forget(now)
	var all []listRight
	for right, a := range of.answers {
		age := deniedAge
		if a.allowed {
			age = allowedAge
		}
		if now.Sub(a.at) >= age && now.Sub(a.tried) >= retryAge {
			all = append(all, right)
		}
	}
	turn := func(a *answer) int {
		switch {
		case a.allowed:
			return 0
		case a.at.IsZero():
			return 1
		}
		return 2
	}
	slices.SortFunc(all, func(x, y listRight) int {
		a, b := of.answers[x], of.answers[y]
		return cmp.Or(cmp.Compare(turn(a), turn(b)), a.at.Compare(b.at),
			cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.gvr.String(), y.gvr.String()))
	})
	return all[:min(len(all), reviewRound)]
}

// ask asks for the rights of a user that are due, until none is.
func (r *rights) ask(of *userRights) {
	defer r.asking.Done()
	for {
		r.mu.Lock()
		due := of.due(time.Now())
		of.asking = len(due) > 0 && r.ctx.Err() == nil
		going := of.asking
		r.mu.Unlock()
		if !going {
			return
		}
		var group errgroup.Group
		group.SetLimit(reviewsOfUser)
		for _, right := range due {
			group.Go(func() error { r.review(of, right); return nil })
		}
		_ = group.Wait()
		r.mu.Lock()
		close(of.changed)
		of.changed = make(chan struct{})
		r.mu.Unlock()
	}
}

func (r *rights) review(of *userRights, right listRight) {
	if r.limiter.Wait(r.ctx) != nil {
		return
	}
	allowed, err := mayList(r.ctx, r.authorizer, of.user, right)
	r.mu.Lock()
	defer r.mu.Unlock()
	a := of.answers[right]
	if a == nil {
		return // forgotten meanwhile
	}
	if a.err = err; err != nil {
		a.tried = time.Now()
		return
	}
	a.allowed, a.at = allowed, time.Now()
}
