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
	// reviewsPerSecond and reviewBurst limit the access reviews of all users. maxReviewsOfUser limits the
	// concurrent access reviews of one user.
	reviewsPerSecond = 100
	reviewBurst      = 200
	maxReviewsOfUser = 4
	// maxReviewsPerRound is the number of rights of a user that are reviewed before they are sorted
	// again.
	maxReviewsPerRound = 64
	// allowedRefreshAge and deniedRefreshAge are the ages at which an answer is refreshed. If the refresh
	// fails, a positive answer expires at maxAllowedAge, and a negative answer remains valid.
	allowedRefreshAge = 30 * time.Second
	deniedRefreshAge  = time.Minute
	maxAllowedAge     = 5 * time.Minute
	maxUnusedAge      = time.Minute
	// failedReviewDelay is the delay before a failed review is retried.
	failedReviewDelay = 5 * time.Second
)

// accessReviewer caches which types users may list. All pages of a user share the answers. It requests
// missing and old answers in the background. It is safe for concurrent use.
type accessReviewer struct {
	authorizer      authorizer.UnconditionalAuthorizer
	limiter         *rate.Limiter
	ctx             context.Context
	cancel          context.CancelFunc
	reviewsInFlight sync.WaitGroup
	mu              struct {
		sync.Mutex
		users map[string]*userAnswers
	}
}

// listAccess is the right to list a type in one namespace, or in all ("").
type listAccess struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// userAnswers are the answers for one user, guarded by the lock of rights.
type userAnswers struct {
	user      user.Info
	answers   map[listAccess]*accessAnswer
	reviewing bool
	changed   chan struct{} // closed when there are new answers
	now       time.Time     // time of the current call of withAnswers
}

type accessAnswer struct {
	allowed    bool
	hasObjects bool      // the type has objects, so its first review is urgent
	answeredAt time.Time // zero before the first answer
	failedAt   time.Time // time of the last failure, with err
	err        error
	lastUsed   time.Time
}

func newRights(reviewAuthorizer authorizer.UnconditionalAuthorizer) *accessReviewer {
	r := &accessReviewer{authorizer: reviewAuthorizer, limiter: rate.NewLimiter(reviewsPerSecond,
		reviewBurst)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.mu.users = map[string]*userAnswers{}
	return r
}

// close stops all reviews. withAnswers must not be called afterwards.
func (r *accessReviewer) close() {
	r.cancel()
	r.reviewsInFlight.Wait()
}

// withAnswers calls read with the answers for a user. read must not block. Then withAnswers requests missing
// and old answers. The returned channel is closed when there are new answers.
func (r *accessReviewer) withAnswers(u user.Info, read func(*userAnswers)) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	id := userID(u)
	answers := r.mu.users[id]
	if answers == nil {
		for otherID, other := range r.mu.users {
			if other.forgetUnused(now); len(other.answers) == 0 && !other.reviewing {
				delete(r.mu.users, otherID)
			}
		}
		answers = &userAnswers{user: u, answers: map[listAccess]*accessAnswer{},
			changed: make(chan struct{})}
		r.mu.users[id] = answers
	}
	answers.now = now
	read(answers)
	if !answers.reviewing && len(answers.dueReviews(now)) > 0 {
		answers.reviewing = true
		r.reviewsInFlight.Add(1)
		go r.runDueReviews(answers) // ended by close, or when nothing is due
	}
	return answers.changed
}

// userID returns the same string for users with the same rights.
func userID(u user.Info) string {
	id, _ := json.Marshal([]any{u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra()}) // never fails
	return string(id)
}

var errNotReviewedYet = errors.New("not asked yet")

// canList reports whether the user has a right. The error says why the right is unknown. Types with objects
// are reviewed first.
func (aa *userAnswers) canList(access listAccess, hasObjects bool) (bool, error) {
	a := aa.answers[access]
	if a == nil {
		a = &accessAnswer{}
		aa.answers[access] = a
	}
	a.lastUsed, a.hasObjects = aa.now, hasObjects
	switch {
	case !a.answeredAt.IsZero() && (!a.allowed || aa.now.Sub(a.answeredAt) < maxAllowedAge):
		return a.allowed, nil
	case a.err != nil:
		return false, a.err
	}
	return false, errNotReviewedYet
}

func (aa *userAnswers) forgetUnused(now time.Time) {
	for right, a := range aa.answers {
		if now.Sub(a.lastUsed) > maxUnusedAge {
			delete(aa.answers, right)
		}
	}
}

// dueReviews returns the rights to review next: first granted rights, then unknown ones to types with
// objects, then other unknown, then denied rights.
func (aa *userAnswers) dueReviews(now time.Time) []listAccess {
	aa.forgetUnused(now)
	var due []listAccess
	for right, aa := range aa.answers {
		refreshAge := deniedRefreshAge
		if aa.allowed {
			refreshAge = allowedRefreshAge
		}
		if now.Sub(aa.answeredAt) >= refreshAge && now.Sub(aa.failedAt) >= failedReviewDelay {
			due = append(due, right)
		}
	}
	priority := func(aa *accessAnswer) int {
		switch {
		case aa.allowed:
			return 0
		case aa.answeredAt.IsZero() && aa.hasObjects:
			return 1
		case aa.answeredAt.IsZero():
			return 2
		}
		return 3
	}
	slices.SortFunc(due, func(x, y listAccess) int {
		aa, b := aa.answers[x], aa.answers[y]
		return cmp.Or(cmp.Compare(priority(aa), priority(b)), aa.answeredAt.Compare(b.answeredAt),
			cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.gvr.String(), y.gvr.String()))
	})
	return due[:min(len(due), maxReviewsPerRound)]
}

// runDueReviews reviews the rights of a user until none is due.
func (r *accessReviewer) runDueReviews(answers *userAnswers) {
	defer r.reviewsInFlight.Done()
	for {
		r.mu.Lock()
		due := answers.dueReviews(time.Now())
		answers.reviewing = len(due) > 0 && r.ctx.Err() == nil
		hasDue := answers.reviewing
		r.mu.Unlock()
		if !hasDue {
			return
		}
		var group errgroup.Group
		group.SetLimit(maxReviewsOfUser)
		for _, access := range due {
			group.Go(func() error { r.reviewAccess(answers, access); return nil })
		}
		_ = group.Wait()
		r.mu.Lock()
		close(answers.changed)
		answers.changed = make(chan struct{})
		r.mu.Unlock()
	}
}

func (r *accessReviewer) reviewAccess(answers *userAnswers, access listAccess) {
	if r.limiter.Wait(r.ctx) != nil {
		return
	}
	allowed, err := canList(r.ctx, r.authorizer, answers.user, access)
	r.mu.Lock()
	defer r.mu.Unlock()
	a := answers.answers[access]
	if a == nil {
		return // forgotten meanwhile
	}
	if a.err = err; err != nil {
		a.failedAt = time.Now()
		return
	}
	a.allowed, a.answeredAt = allowed, time.Now()
}
