<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>AgentKeeper</name>
    <message numerus="yes">
        <source>it did not answer within %n seconds</source>
        <translation>
            <numerusform>it did not answer within %n second</numerusform>
            <numerusform>it did not answer within %n seconds</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>AnswerStream</name>
    <message numerus="yes">
        <source>The agent has said nothing for %n seconds.</source>
        <translation>
            <numerusform>The agent has said nothing for %n second.</numerusform>
            <numerusform>The agent has said nothing for %n seconds.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Call</name>
    <message numerus="yes">
        <source>The agent did not answer within %n seconds.</source>
        <translation>
            <numerusform>The agent did not answer within %n second.</numerusform>
            <numerusform>The agent did not answer within %n seconds.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ChatWindow</name>
    <message numerus="yes">
        <source>All %n chats on this PC are deleted for good.</source>
        <translation>
            <numerusform>%n chat on this PC is deleted for good.</numerusform>
            <numerusform>All %n chats on this PC are deleted for good.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Counts</name>
    <message numerus="yes">
        <source>about %n s left</source>
        <translation>
            <numerusform>about %n s left</numerusform>
            <numerusform>about %n s left</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>about %n min left</source>
        <translation>
            <numerusform>about %n min left</numerusform>
            <numerusform>about %n min left</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>about %n h left</source>
        <translation>
            <numerusform>about %n h left</numerusform>
            <numerusform>about %n h left</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n hours</source>
        <translation>
            <numerusform>%n hour</numerusform>
            <numerusform>%n hours</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n PCs</source>
        <translation>
            <numerusform>%n PC</numerusform>
            <numerusform>%n PCs</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>served by %n PCs</source>
        <translation>
            <numerusform>served by %n PC</numerusform>
            <numerusform>served by %n PCs</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln tokens</source>
        <translation>
            <numerusform>%Ln token</numerusform>
            <numerusform>%Ln tokens</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Editing: sending replaces this question and removes the %n messages after it.</source>
        <translation>
            <numerusform>Editing: sending replaces this question and removes the %n message after it.</numerusform>
            <numerusform>Editing: sending replaces this question and removes the %n messages after it.</numerusform>
        </translation>
    </message>
</context>
</TS>
