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
	// reviewsPerSecond and reviewBurst limit the access reviews of all users together. maxReviewsOfUser
	// limits the concurrent access reviews of a user.
	reviewsPerSecond = 100
	reviewBurst      = 200
	maxReviewsOfUser = 4
	// maxReviewsPerRound is the number of rights of a user that are reviewed before the order is computed
	// again.
	maxReviewsPerRound = 64
	// allowedReuseTime and deniedReuseTime are the ages at which an answer is refreshed. If that fails, a
	// positive answer expires at maxAllowedReuseTime, and a negative answer remains valid.
	allowedReuseTime    = 30 * time.Second
	deniedReuseTime     = time.Minute
	maxAllowedReuseTime = 5 * time.Minute
	forgetUnusedAfter   = time.Minute
	// failedReviewPause is the delay before a failed review is retried.
	failedReviewPause = 5 * time.Second
)

// rights caches which types users may list. All pages of a user share the answers. Missing and old answers
// are requested in the background. It is safe for concurrent use.
type rights struct {
	authorizer      authorizer.UnconditionalAuthorizer
	limiter         *rate.Limiter
	ctx             context.Context
	cancel          context.CancelFunc
	reviewsInFlight sync.WaitGroup
	// onAnswers is called after each round of reviews. It must be set before withRights is called.
	onAnswers func()
	mu        struct {
		sync.Mutex
		users map[string]*accessAnswers
	}
}

// listAccess is the right to list a type in one namespace, or in all ("").
type listAccess struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// accessAnswers are the answers for one user, guarded by the lock of rights.
type accessAnswers struct {
	user      user.Info
	answers   map[listAccess]*accessAnswer
	reviewing bool
	changed   chan struct{} // closed when there are new answers
	now       time.Time     // time of the current call of withRights
}

type accessAnswer struct {
	allowed    bool
	answeredAt time.Time // zero before the first answer
	failedAt   time.Time // time of the last failure, with err
	err        error
	lastUsed   time.Time
}

func newRights(reviewAuthorizer authorizer.UnconditionalAuthorizer) *rights {
	r := &rights{authorizer: reviewAuthorizer, limiter: rate.NewLimiter(reviewsPerSecond, reviewBurst),
		onAnswers: func() {}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.mu.users = map[string]*accessAnswers{}
	return r
}

// close stops all reviews. withRights must not be called afterwards.
func (r *rights) close() {
	r.cancel()
	r.reviewsInFlight.Wait()
}

// withRights calls read with the rights of a user; read must not block. It requests missing and old rights.
// The returned channel is closed when there are new answers.
func (r *rights) withRights(u user.Info, read func(*accessAnswers)) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	id := userID(u)
	answers := r.mu.users[id]
	if answers == nil {
		for old, other := range r.mu.users {
			if other.forgetUnused(now); len(other.answers) == 0 && !other.reviewing {
				delete(r.mu.users, old)
			}
		}
		answers = &accessAnswers{user: u, answers: map[listAccess]*accessAnswer{},
			changed: make(chan struct{})}
		r.mu.users[id] = answers
	}
	answers.now = now
	read(answers)
	if !answers.reviewing && len(answers.dueReviews(now)) > 0 {
		answers.reviewing = true
		r.reviewsInFlight.Add(1)
		go r.reviewDue(answers) // ended by close, or when nothing is due
	}
	return answers.changed
}

// userID returns the same string for users with the same rights.
func userID(u user.Info) string {
	id, _ := json.Marshal([]any{u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra()}) // never fails
	return string(id)
}

var errNotAskedYet = errors.New("not asked yet")

// canList returns whether the user has a right. The error says why the right is unknown.
func (aa *accessAnswers) canList(right listAccess) (bool, error) {
	a := aa.answers[right]
	if a == nil {
		a = &accessAnswer{}
		aa.answers[right] = a
	}
	a.lastUsed = aa.now
	switch {
	case !a.answeredAt.IsZero() && (!a.allowed || aa.now.Sub(a.answeredAt) < maxAllowedReuseTime):
		return a.allowed, nil
	case a.err != nil:
		return false, a.err
	}
	return false, errNotAskedYet
}

func (aa *accessAnswers) forgetUnused(now time.Time) {
	for right, a := range aa.answers {
		if now.Sub(a.lastUsed) > forgetUnusedAfter {
			delete(aa.answers, right)
		}
	}
}

// dueReviews returns the rights to review next: first granted rights, then unknown, then denied.
func (aa *accessAnswers) dueReviews(now time.Time) []listAccess {
	aa.forgetUnused(now)
	var due []listAccess
	for right, aa := range aa.answers {
		age := deniedReuseTime
		if aa.allowed {
			age = allowedReuseTime
		}
		if now.Sub(aa.answeredAt) >= age && now.Sub(aa.failedAt) >= failedReviewPause {
			due = append(due, right)
		}
	}
	priority := func(aa *accessAnswer) int {
		switch {
		case aa.allowed:
			return 0
		case aa.answeredAt.IsZero():
			return 1
		}
		return 2
	}
	slices.SortFunc(due, func(x, y listAccess) int {
		aa, b := aa.answers[x], aa.answers[y]
		return cmp.Or(cmp.Compare(priority(aa), priority(b)), aa.answeredAt.Compare(b.answeredAt),
			cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.gvr.String(), y.gvr.String()))
	})
	return due[:min(len(due), maxReviewsPerRound)]
}

// reviewDue reviews the due rights of a user until there are none.
func (r *rights) reviewDue(u *accessAnswers) {
	defer r.reviewsInFlight.Done()
	for {
		r.mu.Lock()
		due := u.dueReviews(time.Now())
		u.reviewing = len(due) > 0 && r.ctx.Err() == nil
		started := u.reviewing
		r.mu.Unlock()
		if !started {
			return
		}
		var group errgroup.Group
		group.SetLimit(maxReviewsOfUser)
		for _, right := range due {
			group.Go(func() error { r.reviewAccess(u, right); return nil })
		}
		_ = group.Wait()
		r.mu.Lock()
		close(u.changed)
		u.changed = make(chan struct{})
		r.mu.Unlock()
		r.onAnswers()
	}
}

func (r *rights) reviewAccess(u *accessAnswers, right listAccess) {
	if r.limiter.Wait(r.ctx) != nil {
		return
	}
	allowed, err := canList(r.ctx, r.authorizer, u.user, right)
	r.mu.Lock()
	defer r.mu.Unlock()
	a := u.answers[right]
	if a == nil {
		return // forgotten meanwhile
	}
	if a.err = err; err != nil {
		a.failedAt = time.Now()
		return
	}
	a.allowed, a.answeredAt = allowed, time.Now()
}
