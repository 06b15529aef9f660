//! Function bodies: scopes, statements, instructions and their operands.

use warploom_isa::Span;

use super::{Parse, Parser, Unwind, starts_item};
use crate::ast::{Constant, Instruction, Name, Operand, OperandKind, Prototype, Registers, Statement, Type};
use crate::diag::{Diagnostic, MAX_DIAGNOSTICS};
use crate::lex::Kind;

impl<'t> Parser<'t> {
    /// `{ statements }`
    pub(super) fn scope(&mut self) -> Parse<Vec<Statement<'t>>> {
        self.nested(|p| {
            let open = p.expect(Kind::BraceOpen)?.span;
            let mut statements = Vec::new();
            loop {
                if p.eat(Kind::BraceClose) {
                    return Ok(statements);
                }
                if p.at(Kind::Eof) || (p.at(Kind::DotWord) && starts_item(p.word())) {
                    if p.comment_open {
                        return Ok(statements);
                    }
                    p.unwind = Unwind::ToItem;
                    let found = if p.at(Kind::Eof) {
                        "the end of the text".into()
                    } else {
                        format!("`{}`", p.word())
                    };
                    return Err(Diagnostic::new(open, format!("this `{{` is not closed before {found}")));
                }
                let before = p.span().start;
                if let Err(error) = p.statement(&mut statements) {
                    if p.unwind != Unwind::No || p.errors.len() + 1 >= MAX_DIAGNOSTICS {
                        return Err(error);
                    }
                    p.report(error);
                    p.skip_statement();
                    if p.span().start == before && !p.at(Kind::BraceClose) {
                        p.bump();
                    }
                }
            }
        })
    }

    fn statement(&mut self, out: &mut Vec<Statement<'t>>) -> Parse<()> {
        match self.kind() {
            Kind::Semicolon => {
                self.bump();
                Ok(())
            }
            Kind::BraceOpen => {
                out.push(Statement::Scope(self.scope()?));
                Ok(())
            }
            Kind::Ident if self.ahead.kind == Kind::Colon => self.labelled(out),
            Kind::Ident | Kind::At => {
                out.push(Statement::Instruction(self.instruction()?));
                Ok(())
            }
            Kind::DotWord => self.directive(out),
            _ => Err(self.unexpected("an instruction")),
        }
    }

    fn directive(&mut self, out: &mut Vec<Statement<'t>>) -> Parse<()> {
        match self.word() {
            ".reg" => {
                let (ty, list) = self.registers()?;
                out.push(Statement::Registers(ty, list));
            }
            ".loc" => {
                let (file, line) = self.loc()?;
                out.push(Statement::Loc { file, line });
            }
            ".file" => self.file()?,
            ".pragma" => self.pragma(|note| out.push(note))?,
            _ => {
                let linkage = self.linkage();
                self.variables(linkage, &mut |v| out.push(Statement::Variable(Box::new(v))))?;
            }
        }
        Ok(())
    }

    /// `.reg .b32 %r<10>, x;`
    pub(super) fn registers(&mut self) -> Parse<(Type, Vec<Registers<'t>>)> {
        self.bump();
        let declaration = self.declaration(Default::default(), crate::ast::Space::Reg)?;
        let mut list = Vec::new();
        loop {
            let name = self.name("a register's name")?;
            let mut count = None;
            if self.eat(Kind::Less) {
                let number = self.expect(Kind::Int)?;
                let parsed = self.text_of(number).parse::<u32>();
                let out_of_range =
                    |_| Diagnostic::new(number.span, "too many registers").label("at most 4294967295");
                count = Some(parsed.map_err(out_of_range)?);
                self.expect(Kind::Greater)?;
            }
            if self.at(Kind::BracketOpen) {
                return Err(Diagnostic::new(self.span(), "there are no arrays of registers")
                    .help("`%r<10>` declares ten registers; arrays live in `.local` memory"));
            }
            list.push(Registers { name, count, lanes: declaration.lanes });
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Semicolon)?;
        Ok((declaration.ty, list))
    }

    /// `name:`, and the directives that a label names.
    fn labelled(&mut self, out: &mut Vec<Statement<'t>>) -> Parse<()> {
        let name = self.name("a label")?;
        self.expect(Kind::Colon)?;
        if self.eat_word(".branchtargets") {
            out.push(Statement::BranchTargets(name, self.names("a label")?));
        } else if self.eat_word(".calltargets") {
            out.push(Statement::CallTargets(name, self.names("a function's name")?));
        } else if self.eat_word(".callprototype") {
            let returns = if self.at(Kind::ParenOpen) { self.formals()? } else { Vec::new() };
            if !self.eat(Kind::Underscore) {
                self.name("`_`")?;
            }
            let params = if self.at(Kind::ParenOpen) { self.formals()? } else { Vec::new() };
            self.bounds(&mut Default::default())?;
            out.push(Statement::Prototype(Box::new(Prototype { name, returns, params })));
        } else {
            out.push(Statement::Label(name));
            return Ok(());
        }
        self.expect(Kind::Semicolon)?;
        Ok(())
    }

    fn instruction(&mut self) -> Parse<Instruction<'t>> {
        let mut guard = None;
        if self.eat(Kind::At) {
            let negated = self.eat(Kind::Bang);
            guard = Some((self.name("a predicate register")?, negated));
        }
        let start = self.span().start;
        let opcode = self.opcode()?;
        let is_call = opcode[0].text == "call";
        let mut operands = Vec::new();
        if !self.at(Kind::Semicolon) {
            loop {
                operands.push(self.operand(is_call)?);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
        }
        let span = self.since(start);
        if !self.at(Kind::Semicolon) {
            let more = !operands.is_empty() && !self.text[self.last_end as usize..].starts_with(['\r', '\n']);
            return Err(self.unexpected(if more { "`,` or `;`" } else { "`;`" }));
        }
        self.bump();
        Ok(Instruction { guard, opcode, operands, span })
    }

    fn opcode(&mut self) -> Parse<Vec<Name<'t>>> {
        let mut words = vec![self.name("an opcode")?];
        while self.at(Kind::DotWord) {
            let span = self.span();
            let dot = self.word();
            words.push(Name { text: &dot[1..], span: Span { start: span.start + 1, end: span.end } });
            self.bump();
            // `ld.const[2].f32`: a bank number, up to PTX 2.1.
            if dot == ".const" && self.at(Kind::BracketOpen) && self.span().start == self.last_end {
                self.bump();
                self.int()?;
                self.expect(Kind::BracketClose)?;
            }
        }
        Ok(words)
    }

    fn operand(&mut self, is_call: bool) -> Parse<Operand<'t>> {
        let start = self.span().start;
        let kind = self.operand_kind(is_call)?;
        let operand = Operand { kind, span: self.since(start) };
        if !self.at(Kind::Or) {
            return Ok(operand);
        }
        self.bump();
        let start_right = self.span().start;
        let kind = self.operand_kind(false)?;
        let right = Operand { kind, span: self.since(start_right) };
        let kind = OperandKind::Pair(Box::new(operand), Box::new(right));
        Ok(Operand { kind, span: self.since(start) })
    }

    fn operand_kind(&mut self, is_call: bool) -> Parse<OperandKind<'t>> {
        match self.kind() {
            Kind::Underscore => {
                self.bump();
                Ok(OperandKind::Sink)
            }
            Kind::Ident if self.word() != "WARP_SZ" => {
                let name = self.bump();
                let text = self.text_of(name);
                if self.at(Kind::DotWord) && self.span().start == self.last_end {
                    let component = self.word();
                    self.bump();
                    return Ok(OperandKind::Component(text, &component[1..]));
                }
                Ok(OperandKind::Name(text, self.offset()?))
            }
            Kind::Bang if self.ahead.kind == Kind::Ident => {
                self.bump();
                Ok(OperandKind::Not(self.name("a predicate register")?))
            }
            Kind::Minus if self.ahead.kind == Kind::Ident && self.text_of(self.ahead) != "WARP_SZ" => {
                self.bump();
                let start = self.span().start;
                let kind = self.operand_kind(false)?;
                Ok(OperandKind::Minus(Box::new(Operand { kind, span: self.since(start) })))
            }
            Kind::ParenOpen if is_call => {
                Ok(OperandKind::List(self.operands(Kind::ParenOpen, Kind::ParenClose, "`,` or `)`")?))
            }
            Kind::BraceOpen => {
                // Stays open after an error in an operand, so that recovery knows of the brace.
                self.open_braces += 1;
                let list = self.operands(Kind::BraceOpen, Kind::BraceClose, "`,` or `}`")?;
                self.open_braces -= 1;
                Ok(OperandKind::Vector(list))
            }
            Kind::BracketOpen => self.address(),
            kind if begins_constant(kind) => Ok(OperandKind::Constant(self.constant()?)),
            _ => Err(self.unexpected("an operand")),
        }
    }

    fn operands(&mut self, open: Kind, close: Kind, wanted: &str) -> Parse<Vec<Operand<'t>>> {
        self.nested(|p| {
            p.expect(open)?;
            let mut list = Vec::new();
            if !p.at(close) {
                list.push(p.operand(false)?);
                while p.eat(Kind::Comma) {
                    list.push(p.operand(false)?);
                }
            }
            if !p.at(close) {
                return Err(p.unexpected(wanted));
            }
            p.bump();
            Ok(list)
        })
    }

    /// `[a+4]`, `[16]`, `[t, {x, y}]`
    fn address(&mut self) -> Parse<OperandKind<'t>> {
        let mut list = self.operands(Kind::BracketOpen, Kind::BracketClose, "`]`")?;
        if list.len() == 1
            && let Some(Operand { kind, span }) = list.pop()
        {
            match kind {
                OperandKind::Name(text, offset) => {
                    let span = Span { start: span.start, end: span.start + text.len() as u32 };
                    return Ok(OperandKind::Address(Some(Name { text, span }), offset));
                }
                OperandKind::Constant(Constant::Int { bits, .. }) => {
                    return Ok(OperandKind::Address(None, bits as i64));
                }
                kind => list.push(Operand { kind, span }),
            }
        }
        if list.len() < 2 {
            let error = Diagnostic::new(self.since(self.last_end.saturating_sub(1)), "malformed address");
            return Err(
                error.help("an address is `[register+constant]`, `[variable+constant]` or `[constant]`")
            );
        }
        Ok(OperandKind::Bracket(list))
    }
}

/// Whether a constant expression can begin with this token.
fn begins_constant(kind: Kind) -> bool {
    use Kind::*;
    // `.5` is a `DotWord`, `WARP_SZ` an `Ident`.
    matches!(
        kind,
        Int | HexF32 | HexF64 | Decimal | DotWord | Ident | ParenOpen | Plus | Minus | Tilde | Bang
    )
}
