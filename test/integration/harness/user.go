package harness

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// accountNamespace is the namespace of the users' service accounts.
const accountNamespace = "default"

// User is a service account with the granted rights and the rights of all authenticated users.
type User struct {
	// Name is the name of the service account. Username is its name in rules.
	Name, Username string
	admin          kubernetes.Interface
}

// NewUser creates a user whose name starts with name. The user is deleted at the end of the test.
func NewUser(t testing.TB, name string) *User {
	t.Helper()
	admin, err := kubernetes.NewForConfig(Config(t))
	must(t, err)
	account, err := admin.CoreV1().ServiceAccounts(accountNamespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: name +
			"-"}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		if err := admin.CoreV1().ServiceAccounts(accountNamespace).Delete(context.Background(), account.Name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return &User{Name: account.Name, Username: fmt.Sprintf("system:serviceaccount:%s:%s", accountNamespace,
		account.Name), admin: admin}
}

// Config returns a configuration for the API server with a new token of the user, valid for an hour.
func (u *User) Config(t testing.TB) *rest.Config {
	t.Helper()
	request, err := u.admin.CoreV1().ServiceAccounts(accountNamespace).CreateToken(t.Context(), u.Name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	config := rest.AnonymousClientConfig(Config(t))
	config.BearerToken, config.QPS, config.WarningHandler = request.Status.Token, -1, rest.NoWarnings{}
	return config
}

// Grant grants rights in a namespace, or in all namespaces if it is empty. They last until revoke is called
// or the test ends. Both functions wait until the API server applies the change.
func (u *User) Grant(t testing.TB, namespace string, rules ...rbacv1.PolicyRule) (revoke func()) {
	t.Helper()
	roles := u.admin.RbacV1().ClusterRoles()
	role, err := roles.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: u.Name + "-"}, Rules: rules,
	}, metav1.CreateOptions{})
	must(t, err)
	// fails if revoke has deleted the role
	t.Cleanup(func() { _ = roles.Delete(context.Background(), role.Name, metav1.DeleteOptions{}) })
	u.bind(t, namespace, "ClusterRole", role.Name)
	u.await(t, namespace, rules, true)
	return func() {
		t.Helper()
		must(t, roles.Delete(context.Background(), role.Name, metav1.DeleteOptions{}))
		u.await(t, namespace, rules, false)
	}
}

// bind binds a role to the user in a namespace, or in all namespaces if it is empty, until the test ends.
func (u *User) bind(t testing.TB, namespace, kind, role string) {
	t.Helper()
	meta := metav1.ObjectMeta{GenerateName: u.Name + "-", Namespace: namespace}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: u.Name}}
	everywhere, inNamespace := u.admin.RbacV1().ClusterRoleBindings(),
		u.admin.RbacV1().RoleBindings(namespace)
	ctx := context.Background()
	var err error
	if namespace == "" {
		var made *rbacv1.ClusterRoleBinding
		made, err = everywhere.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref,
			Subjects: subjects}, metav1.CreateOptions{})
		t.Cleanup(func() { _ = everywhere.Delete(ctx, made.Name, metav1.DeleteOptions{}) })
	} else {
		var made *rbacv1.RoleBinding
		made, err = inNamespace.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref,
			Subjects: subjects}, metav1.CreateOptions{})
		// fails if the namespace was deleted
		t.Cleanup(func() { _ = inNamespace.Delete(ctx, made.Name, metav1.DeleteOptions{}) })
	}
	must(t, err)
}

// await waits until the API server grants, or no longer grants, the first verb of each rule.
func (u *User) await(t testing.TB, namespace string, rules []rbacv1.PolicyRule, granted bool) {
	t.Helper()
	for _, rule := range rules {
		spec := authorizationv1.SubjectAccessReviewSpec{User: u.Username}
		if len(rule.NonResourceURLs) > 0 {
			spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: rule.NonResourceURLs[0],
				Verb: rule.Verbs[0]}
		} else {
			resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
			spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource,
				Subresource: subresource,
			}
			if len(rule.ResourceNames) > 0 {
				spec.ResourceAttributes.Name = rule.ResourceNames[0]
			}
		}
		Eventually(t, func(ctx context.Context) error {
			review, err := u.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx,
				&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			if review.Status.Allowed != granted {
				return fmt.Errorf("access of %s to %v: allowed is %v, want %v", u.Username, rule,
					review.Status.Allowed, granted)
			}
			return nil
		})
	}
}
