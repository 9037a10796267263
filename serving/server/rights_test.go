package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// reviewer answers reviews after 5 ms. A user can list the resources whose names start with the user's name.
type reviewer struct {
	mu            sync.Mutex
	reviews       int
	concurrent    int // concurrent reviews, and their maximum
	maxConcurrent int
	isDenying     bool
}

func (r *reviewer) Authorize(_ context.Context,
	a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.mu.Lock()
	r.reviews++
	r.concurrent++
	r.maxConcurrent = max(r.maxConcurrent, r.concurrent)
	r.mu.Unlock()
	time.Sleep(5 * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.concurrent--
	if !r.isDenying && strings.HasPrefix(a.GetResource(), a.GetUser().GetName()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (r *reviewer) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reviews
}

// TestReviewsAreBounded opens many types in many namespaces as one user. It verifies that types appear as
// reviews are answered, that another user is not delayed, and that the number of reviews stays within its
// limits.
func TestReviewsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &reviewer{}
		r := newRights(reviews)
		defer r.close()
		// readRights returns the number of types whose cluster-wide permission is known, and the numbers of
		// the user's granted and unknown permissions.
		readRights := func(name string, namespaces int) (known, granted, unknown int) {
			r.withAnswers(&user.DefaultInfo{Name: name}, func(answers *userAnswers) {
				for i := range 258 {
					gvr := schema.GroupVersionResource{Group: "many.example", Version: "v1",
						Resource: fmt.Sprintf("%c%d", "abc"[i%3], i)}
					all, err := answers.canList(listAccess{gvr, ""}, i%2 == 1)
					if err != nil {
						unknown++
						continue
					}
					known++
					if all {
						granted++
						continue
					}
					for n := range namespaces {
						if _, err := answers.canList(listAccess{gvr, fmt.Sprintf("ns-%d", n)},
							i%2 == 1); err != nil {
							unknown++
						}
					}
				}
			})
			return known, granted, unknown
		}
		began := time.Now()
		advance := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		readRights("none", 16)
		advance(time.Second / 5)
		r.withAnswers(&user.DefaultInfo{Name: "none"}, func(answers *userAnswers) {
			for right, answer := range answers.answers {
				if right.namespace == "" && answer.hasObjects && answer.answeredAt.IsZero() {
					t.Errorf("%s has objects and is not reviewed before the types without objects", right.gvr)
				}
			}
		})
		advance(time.Second * 4 / 5)
		if known, _, _ := readRights("none", 16); known < 200 {
			t.Errorf("after a second, the permissions of %d types are known, want at least 200", known)
		}
		advance(5 * time.Second)
		readRights("none", 16)
		readRights("a", 0)
		advance(5 * time.Second)
		if known, granted, _ := readRights("a", 0); known < 200 || granted < 60 {
			t.Errorf("while another user has many reviews, %d types are known after 5 s and %d are granted, want 200 and 60",
				known, granted)
		}
		for range 60 {
			advance(time.Second)
			readRights("none", 16)
			readRights("a", 0)
		}
		if _, _, unknown := readRights("none", 16); unknown > 0 {
			t.Errorf("%d permissions are unknown after a minute, want 0", unknown)
		}
		if most := reviewBurst + int(time.Since(began).Seconds()*reviewsPerSecond); reviews.count() > most ||
			reviews.maxConcurrent > 2*maxReviewsOfUser {
			t.Errorf("%d reviews with %d concurrent ones, want at most the limits", reviews.count(),
				reviews.maxConcurrent)
		}
		reviews.mu.Lock()
		reviews.isDenying = true
		reviews.mu.Unlock()
		for range 45 {
			advance(time.Second)
			readRights("none", 16)
			readRights("a", 0)
		}
		if _, granted, _ := readRights("a", 0); granted > 0 {
			t.Errorf("%d revoked permissions are still granted after 45 s, want 0", granted)
		}
		advance(2 * maxUnusedAge)
		readRights("b", 0)
		if ids := slices.Collect(rightsUsers(r)); len(ids) != 1 {
			t.Errorf("users with cached permissions are %v, want 1", ids)
		}
	})
}

func rightsUsers(r *accessReviewer) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for id := range r.mu.users {
			if !yield(id) {
				return
			}
		}
	}
}
