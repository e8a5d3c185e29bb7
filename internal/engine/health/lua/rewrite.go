// SPDX-License-Identifier: Apache-2.0

package lua

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// Functions that stand for instructions. Their names are no identifiers of Lua,
// so a script can neither call nor shadow them. It could remove them through _G,
// and then concatenate or assign no more.
const (
	concatName = "%concat"
	setName    = "%set"
	tableName  = "%table"
	keyName    = "%key"
)

// maxNesting is how deep statements and expressions may lie in each other. The
// compiler, as this file, calls itself for each level.
const maxNesting = 1000

// rewriter changes a program in place. It stops where that is nested too deep,
// and then the program must not be used.
type rewriter struct {
	depth   int
	tooDeep bool
}

// enter goes a level down, if it may.
func (r *rewriter) enter() bool {
	if r.depth >= maxNesting {
		r.tooDeep = true
		return false
	}
	r.depth++
	return true
}

func (r *rewriter) leave() { r.depth-- }

func (r *rewriter) rewriteBlock(list []ast.Stmt) {
	for i, stmt := range list {
		list[i] = r.rewriteStmt(stmt)
	}
}

func (r *rewriter) rewriteStmt(stmt ast.Stmt) ast.Stmt {
	if !r.enter() {
		return stmt
	}
	defer r.leave()
	switch s := stmt.(type) {
	case *ast.AssignStmt:
		r.rewriteList(s.Lhs)
		r.rewriteList(s.Rhs)
		return rewriteAssignment(s)
	case *ast.LocalAssignStmt:
		r.rewriteList(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = r.rewriteExpr(s.Expr)
	case *ast.DoBlockStmt:
		r.rewriteBlock(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.rewriteExpr(s.Condition)
		r.rewriteBlock(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = r.rewriteExpr(s.Condition)
		r.rewriteBlock(s.Stmts)
	case *ast.IfStmt:
		s.Condition = r.rewriteExpr(s.Condition)
		r.rewriteBlock(s.Then)
		r.rewriteBlock(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit, s.Step = r.rewriteExpr(s.Init), r.rewriteExpr(s.Limit), r.rewriteExpr(s.Step)
		r.rewriteBlock(s.Stmts)
	case *ast.GenericForStmt:
		r.rewriteList(s.Exprs)
		r.rewriteBlock(s.Stmts)
	case *ast.FuncDefStmt:
		r.rewriteBlock(s.Func.Stmts)
	case *ast.ReturnStmt:
		r.rewriteList(s.Exprs)
	}
	return stmt
}

func (r *rewriter) rewriteList(list []ast.Expr) {
	for i, expr := range list {
		list[i] = r.rewriteExpr(expr)
	}
}

func (r *rewriter) rewriteExpr(expr ast.Expr) ast.Expr {
	if !r.enter() {
		return expr
	}
	defer r.leave()
	switch e := expr.(type) {
	case *ast.StringConcatOpExpr:
		return call(e, concatName, r.rewriteExpr(e.Lhs), r.rewriteExpr(e.Rhs))
	case *ast.TableExpr:
		for _, field := range e.Fields {
			field.Value = r.rewriteExpr(field.Value)
			if _, isText := field.Key.(*ast.StringExpr); field.Key != nil && !isText {
				field.Key = call(e, keyName, r.rewriteExpr(field.Key))
			}
		}
		return call(e, tableName, e)
	case *ast.AttrGetExpr:
		e.Object, e.Key = r.rewriteExpr(e.Object), r.rewriteExpr(e.Key)
	case *ast.FuncCallExpr:
		e.Func, e.Receiver = r.rewriteExpr(e.Func), r.rewriteExpr(e.Receiver)
		r.rewriteList(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.rewriteExpr(e.Lhs), r.rewriteExpr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.rewriteExpr(e.Lhs), r.rewriteExpr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = r.rewriteExpr(e.Lhs), r.rewriteExpr(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		e.Expr = r.rewriteExpr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.rewriteExpr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = r.rewriteExpr(e.Expr)
	case *ast.FunctionExpr:
		r.rewriteBlock(e.Stmts)
	}
	return expr
}

// rewriteAssignment turns t[k] = v into a call, unless k is a name that stands in
// the script: of those there are only so many.
//
// With several variables the values are computed first, as Lua does; then tables
// are assigned to before plain variables, so that i, t[i] = 1, 2 uses the old i.
func rewriteAssignment(s *ast.AssignStmt) ast.Stmt {
	indexed := 0
	for _, target := range s.Lhs {
		if isIndexed(target) {
			indexed++
		}
	}
	if indexed == 0 {
		return s
	}
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		return setCall(s, s.Lhs[0], s.Rhs[0])
	}
	values := &ast.LocalAssignStmt{Exprs: s.Rhs}
	place(values, s)
	block := &ast.DoBlockStmt{Stmts: []ast.Stmt{values}}
	place(block, s)
	var plain []ast.Stmt
	for i, target := range s.Lhs {
		name := fmt.Sprintf("%%%d", i)
		values.Names = append(values.Names, name)
		value := &ast.IdentExpr{Value: name}
		place(value, s)
		if isIndexed(target) {
			block.Stmts = append(block.Stmts, setCall(s, target, value))
			continue
		}
		assign := &ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{value}}
		place(assign, s)
		plain = append(plain, assign)
	}
	block.Stmts = append(block.Stmts, plain...)
	return block
}

func isIndexed(target ast.Expr) bool {
	attr, ok := target.(*ast.AttrGetExpr)
	if !ok {
		return false
	}
	_, isText := attr.Key.(*ast.StringExpr)
	return !isText
}

func setCall(at ast.PositionHolder, target, value ast.Expr) ast.Stmt {
	attr, ok := target.(*ast.AttrGetExpr)
	if !ok {
		panic("only indexed targets come here")
	}
	stmt := &ast.FuncCallStmt{Expr: call(at, setName, attr.Object, attr.Key, value)}
	place(stmt, at)
	return stmt
}

// call is a call of one of our functions, which gives one value.
func call(at ast.PositionHolder, name string, args ...ast.Expr) *ast.FuncCallExpr {
	function := &ast.IdentExpr{Value: name}
	place(function, at)
	expr := &ast.FuncCallExpr{Func: function, Args: args, AdjustRet: true}
	place(expr, at)
	return expr
}

func place(node, at ast.PositionHolder) {
	node.SetLine(at.Line())
	node.SetLastLine(at.LastLine())
}
